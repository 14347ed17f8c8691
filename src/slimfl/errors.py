"""The two ways a command can end badly, told apart by their exit status."""


class RequestError(Exception):
    """The request was wrong; its one sentence says what to change (exit status 2)."""


class RunError(Exception):
    """The request was right, but carrying it out failed (exit status 1)."""
