"""Run a run folder on a SuperLink, and watch it as if it ran here.

The rounds run in the ServerApp, a process of the SuperLink on this machine. Its progress is read
only from the run folder: a new line is a new round, and the folder's lock shows whether it is still
running.
"""

import time
from collections.abc import Sequence

from slimfl.errors import Interrupted, RequestError, RunError
from slimfl.flower.superlink import SuperLink, UnreachableError
from slimfl.nn import Vector
from slimfl.round import Callback, RoundRecord, RunFolder, completed
from slimfl.runs.callbacks import Callbacks

#: Intervals for polling the folder and the SuperLink.
LOOK_S, ASK_S = 0.25, 5.0


def carry_out(folder: RunFolder, superlink: SuperLink, callbacks: Sequence[Callback] = ()) -> None:
    """Start the remaining rounds on a SuperLink and return when they are done.

    Args:
        folder: The run.
        superlink: Where it is to run; it must be on this machine.
        callbacks: Told of every round.
    """
    run = superlink.start(folder.path)
    told = Callbacks(callbacks)
    lines = folder.intact_metrics().lines
    told.start(folder.experiment(), len(lines))
    try:
        _watch(folder, superlink, run, told, len(lines))
    except (KeyboardInterrupt, Interrupted):
        superlink.stop(run)
        raise
    finally:
        told.end()


def _watch(
    folder: RunFolder, superlink: SuperLink, run: int, callbacks: Callbacks, seen: int
) -> None:
    asked = 0.0
    while True:
        at_work = folder.in_use()
        lines = folder.intact_metrics().lines
        for line in _new(lines, seen):
            callbacks.round(line, _model_elsewhere)
        seen = max(seen, len(lines))
        if not at_work and completed(folder, folder.experiment(), verify=True):
            return
        if not at_work and time.monotonic() - asked > ASK_S:
            try:
                state = superlink.status(run)
            except UnreachableError as error:
                raise RunError(f"{error}; {_way_on(folder)}") from error
            asked = time.monotonic()
            if state.status == "finished" and not completed(
                folder, folder.experiment(), verify=True
            ):
                reason = state.details.removeprefix("ServerApp failed with exception: ")
                if "slimfl resume" not in reason:
                    reason = f"{reason or 'the run was ended'}; {_way_on(folder)}"
                raise RunError(reason)
        time.sleep(LOOK_S)


def _way_on(folder: RunFolder) -> str:
    done = len(folder.intact_metrics().lines)
    return f"`slimfl resume {folder.path} --superlink ...` continues after round {done}"


def _new(lines: list[RoundRecord], seen: int) -> list[RoundRecord]:
    """The lines of rounds that were not shown yet; a resumed run may have removed some."""
    return [line for line in lines if line.round > seen]


def _model_elsewhere() -> Vector:
    raise RequestError("the model is on the server; read the checkpoint in the run folder")
