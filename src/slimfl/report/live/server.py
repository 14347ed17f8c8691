"""Serves the page until it is stopped."""

import logging
import secrets
import socket
import threading
from types import FrameType

import uvicorn

from slimfl.errors import RequestError
from slimfl.report.live.app import application
from slimfl.report.live.board import Board
from slimfl.report.live.heads import PromptHeads

#: The default port; if it is taken, another one is used.
PORT = 8321


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
                http=PromptHeads,
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
