"""Validation of host names and addresses for scripts, configurations and certificates."""

import ipaddress
import re
import socket

from slimfl.errors import RequestError

_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")


def check_host(host: str, option: str) -> None:
    """Refuse anything but a name or an address for the certificate and the devices' scripts."""
    if _is_address(host) or (len(host) <= 253 and _NAME.fullmatch(host)):
        return
    raise RequestError(f"{option} takes a name such as fl.example.org or an address, not {host!r}")


def is_loopback(host: str) -> bool:
    """True if only this machine can reach it."""
    if host == "localhost":
        return True
    return _is_address(host) and ipaddress.ip_address(host).is_loopback


def joined(host: str, port: int) -> str:
    """HOST:PORT."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def collide(bind: str, port: int, control_port: int) -> bool:
    """True if a server at `bind` would take the SuperLink's port on 127.0.0.1."""
    return port == control_port and bind in ("localhost", "127.0.0.1", "0.0.0.0", "::")


def check_free(host: str, port: int) -> None:
    """Refuse an address on which nothing can listen, before a server fails there without a word."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        reason = str(error.strerror or error).partition(" (while")[0]  # Python adds the address
        raise RequestError(
            f"nothing can listen on {joined(host, port)} ({reason}); stop what "
            "uses it, or make the kit with another --port, --bind or --control-port"
        ) from None


def _is_address(host: str) -> bool:
    try:
        return not getattr(ipaddress.ip_address(host), "scope_id", None)
    except ValueError:
        return False
