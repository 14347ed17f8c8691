"""Makes a device misbehave: Python runs this file in every process that has its folder on the path.

`SLIMFL_MISDEEDS` lists misbehaviours by round, for example `1=nan 2=shape`.
"""

import os
import sys

MISDEEDS = dict(word.split("=") for word in os.environ.get("SLIMFL_MISDEEDS", "").split())


def corrupt(misdeed, answer):
    """What the device says instead of its answer."""
    import time
    from dataclasses import replace

    import numpy as np

    update = answer.update
    if misdeed == "nan":
        update = replace(update, parameters=np.full_like(update.parameters, np.nan))
    elif misdeed == "huge":
        update = replace(update, parameters=np.full_like(update.parameters, 3e38))
    elif misdeed == "shape":
        update = replace(update, parameters=update.parameters[:-7])
    elif misdeed == "impostor":
        update = replace(update, device=0)
    elif misdeed == "model":
        answer = replace(answer, trained_from="0" * 64)
    elif misdeed == "late":
        time.sleep(float(os.environ["SLIMFL_LATE_S"]))
    return replace(answer, update=update)


if MISDEEDS and any("flwr-clientapp" in word for word in sys.orig_argv):
    from slimfl.flower.device import Workbench

    honest = Workbench.work

    def work(self, order, equipment):
        answer = honest(self, order, equipment)
        misdeed = MISDEEDS.get(str(order.round))
        return corrupt(misdeed, answer) if misdeed else answer

    Workbench.work = work
