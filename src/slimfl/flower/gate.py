"""Checks that every request has to pass before Flower sees it."""

import asyncio
import hmac
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
App = Callable[[Event, Receive, Send], Awaitable[None]]

#: Maximum size of a body: Flower sends arrays in pieces of 5 MB, and an app has at most 10 MB.
BODY_BYTES = 32 * 2**20

#: Maximum size of all bodies in memory at a time, from all senders.
HELD_BYTES = 256 * 2**20

#: Time limit for a body, so that a slow sender does not occupy memory for long.
BODY_S = 60.0

PATH = re.compile(r"/health|/v1/(control|fleet|runtime)/[a-z-]+")


class Gate:
    """ASGI middleware that lets a request through if its path, token and length are valid.

    Bodies are read completely here, as Flower would do before it knows who is asking.
    """

    def __init__(self, app: App, token: str | None) -> None:
        """Control paths require the token; without one they are closed."""
        self.app, self.token = app, token
        self.held = 0

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # a web socket, which nothing here uses
            return
        status = self.refuses(scope)
        if status:
            await _answer(send, status)
            return
        body = bytearray()
        try:
            status = await self._read(body, receive)
            if status:
                await _answer(send, status)
            else:
                await self.app(scope, _replay(bytes(body), receive), send)
        finally:
            self.held -= len(body)

    def refuses(self, scope: Event) -> int | None:
        """The status code for a request with an invalid head; None if it is valid."""
        found = PATH.fullmatch(scope["path"])
        if found is None:
            return 404
        if found[1] == "control" and not self._authorised(scope):
            return 401
        length = _header(scope, b"content-length")
        if length is not None and not (length.isdigit() and int(length[:20]) <= BODY_BYTES):
            return 413
        return None

    def _authorised(self, scope: Event) -> bool:
        given = _header(scope, b"authorization") or b""
        wanted = f"Bearer {self.token}".encode()
        return self.token is not None and hmac.compare_digest(given, wanted)

    async def _read(self, body: bytearray, receive: Receive) -> int | None:
        """Collect a body; returns a status code if it is too long, too slow or incomplete."""
        try:
            async with asyncio.timeout(BODY_S):
                while True:
                    event = await receive()
                    if event["type"] != "http.request":
                        return 400
                    chunk = event.get("body", b"")
                    if len(body) + len(chunk) > BODY_BYTES:
                        return 413
                    if self.held + len(chunk) > HELD_BYTES:
                        return 503
                    body += chunk
                    self.held += len(chunk)
                    if not event.get("more_body", False):
                        return None
        except TimeoutError:
            return 408


def _header(scope: Event, name: bytes) -> bytes | None:
    """A header's value; None if it is repeated, which no legitimate client does."""
    values = [value for key, value in scope["headers"] if key == name]
    return values[0] if len(values) == 1 else None


def _replay(body: bytes, receive: Receive) -> Receive:
    events = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Event:
        return events.pop() if events else await receive()

    return replayed


async def _answer(send: Send, status: int) -> None:
    """Answer and close the connection, without the rest of the body."""
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b'{"detail":"refused"}'})
