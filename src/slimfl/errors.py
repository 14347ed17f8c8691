"""The ways in which a command can fail, distinguished by their exit status."""


class RequestError(Exception):
    """The request was wrong; its one sentence says what to change (exit status 2)."""


class RunError(Exception):
    """The request was right, but carrying it out failed (exit status 1)."""


class Interrupted(BaseException):
    """A signal asked the command to end (exit status 128 and the signal's number).

    Not an Exception, so that no handler of ordinary errors catches it.
    """

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.status = 128 + signal_number
        self.way_on = "give the same command again"
