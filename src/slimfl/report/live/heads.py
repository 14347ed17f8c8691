"""Connections on which a request's head does not come in time."""

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # what uvicorn takes if httptools is absent; both have the same interface
    from uvicorn.protocols.http.h11_impl import H11Protocol as HTTPProtocol
else:
    from uvicorn.protocols.http.auto import AutoHTTPProtocol as HTTPProtocol

#: Time within which the head of a request must come, as in nginx of the deployment kit.
HEAD_S = 15.0


class PromptHeads(HTTPProtocol):
    """Closes connections whose request does not come in time; uvicorn waits for it for ever."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a head."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Begin to wait with the first byte of a head, and end with its last."""
        self._watch()
        super().data_received(data)
        if self._answering:
            self._stop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        super().connection_lost(exc)
        self._stop()

    @property
    def _answering(self) -> bool:
        """Whether a head is complete, and its answer is not."""
        return self.cycle is not None and not self.cycle.response_complete

    def _watch(self) -> None:
        if self._late is None and not self._answering:
            self._late = self.loop.call_later(HEAD_S, self.transport.abort)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
