"""Serves the page until it is stopped."""

import asyncio
import logging
import secrets
import socket
import threading
from types import FrameType

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from slimfl.errors import RequestError
from slimfl.report.live.app import application
from slimfl.report.live.board import Board

#: The default port; if it is taken, another one is used.
PORT = 8321

#: Time within which the head of a request must come, as in nginx of the deployment kit.
HEAD_S = 15.0


class Server:
    """A bound socket and the server behind it."""

    def __init__(self, board: Board, token: str | None, host: str, port: int | None) -> None:
        self.board, self.host = board, host
        self.token = token or secrets.token_urlsafe(24)
        self.socket = _bound(host, port)

    @property
    def url(self) -> str:
        """The address of the page."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.socket.getsockname()[1]}/{self.token}/"

    def serve(self, seconds: float | None) -> None:
        """Serve until a signal comes or the time is over."""
        follower = threading.Thread(target=self.board.follow, name="follow runs", daemon=True)
        follower.start()
        server = _Uvicorn(
            uvicorn.Config(
                application(self.board, self.token, self.host),
                log_config=None,
                log_level=logging.ERROR,
                access_log=False,  # it would contain the token
                http=_Protocol,
                ws="none",
                lifespan="off",
                server_header=False,
                timeout_graceful_shutdown=2,
            ),
            self.board,
        )
        end = threading.Timer(seconds or 0, server.end)
        end.daemon = True
        if seconds is not None:
            end.start()
        try:
            server.run(sockets=[self.socket])
        finally:
            end.cancel()
            self.board.close()
            follower.join(timeout=5)


class _Protocol(H11Protocol):
    """Closes connections whose request does not come in time; uvicorn waits for it for ever."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop()

    def handle_events(self) -> None:
        super().handle_events()
        self._watch()

    def _watch(self) -> None:
        """Start the clock where a request is awaited, and stop it once its head is there."""
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_S, self.transport.abort)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class _Uvicorn(uvicorn.Server):
    """Ends the event streams at shutdown, instead of waiting for them."""

    def __init__(self, config: uvicorn.Config, board: Board) -> None:
        super().__init__(config)
        self.board = board

    def end(self) -> None:
        self.should_exit = True
        self.board.close()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.board.close()
        super().handle_exit(sig, frame)


def _bound(host: str, port: int | None) -> socket.socket:
    for number in (PORT, 0) if port is None else (port,):
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            return socket.create_server((host, number), family=family)
        except OSError as error:
            problem = error.strerror or str(error)
    raise RequestError(
        f"port {number} of {host} cannot be used ({problem}); choose another --port or --host"
    )
