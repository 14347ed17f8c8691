"""Access control: only requests that name this machine and know the token.

The token is the first part of every path. So links, scripts and event streams carry it without
cookies, which browsers share between all ports of a machine. The Host header is checked because
another page could point its own name at 127.0.0.1 (DNS rebinding) and would then have our origin.
"""

import ipaddress
import secrets

from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: For the page itself: nothing is loaded from or sent to elsewhere.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

HEADERS = {
    "content-security-policy": PAGE_POLICY,
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Guard:
    """Middleware that refuses strangers and adds `HEADERS` to every answer."""

    def __init__(self, app: ASGIApp, token: str, host: str) -> None:
        self.app, self.token, self.host = app, token, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            return
        _, token, *rest = f"{scope['path']}".split("/", 2)
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        answer: ASGIApp
        if len(hosts) != 1 or not is_own_host(hosts[0].decode("latin-1"), self.host):
            answer = PlainTextResponse("This server answers only under its own address.\n", 421)
        elif not secrets.compare_digest(_encoded(token), _encoded(self.token)):
            answer = PlainTextResponse(
                "The token is missing. Open the address that slimfl watch printed.\n", 403
            )
        elif not rest:
            answer = RedirectResponse(f"/{self.token}/")
        else:
            answer = self.app
            path = f"/{rest[0]}"
            scope = {**scope, "path": path, "raw_path": _encoded(path), "root_path": ""}
        await answer(scope, receive, _with_headers(send))


def is_own_host(header: str, bound: str) -> bool:
    """True if a Host header names this machine by an address or as localhost.

    Ports may differ: the page may come through `ssh -L`. A server that listens on all addresses
    cannot know which one is used, so any address passes there, but no name.

    >>> is_own_host("127.0.0.1:8000", "127.0.0.1"), is_own_host("[::1]:80", "127.0.0.1")
    (True, True)
    >>> is_own_host("example.org", "127.0.0.1"), is_own_host("10.0.0.7:80", "127.0.0.1")
    (False, False)
    >>> is_own_host("10.0.0.7:80", "0.0.0.0"), is_own_host("example.org", "0.0.0.0")
    (True, False)
    """
    name = header.rpartition(":")[0] if header.rpartition(":")[2].isdecimal() else header
    name = name.lower().removeprefix("[").removesuffix("]")
    if name in ("localhost", bound.lower()):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or _is_any(bound)


def _is_any(bound: str) -> bool:
    try:
        return ipaddress.ip_address(bound).is_unspecified
    except ValueError:
        return False


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name for name, _ in message["headers"]}
            added = [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in own]
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return sent
