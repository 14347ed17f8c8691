"""How the engine reaches its devices."""

from collections.abc import Callable
from functools import partial

from flwr.serverapp import Grid

from slimfl.engines.choice import ChooseEngine, choose
from slimfl.errors import RequestError
from slimfl.experiment import Experiment
from slimfl.flower.engine import Connection
from slimfl.flower.roster import ClaimedRoster, RegisteredRoster


def connector(experiment: Experiment, cores: int, grid: Grid | None) -> Callable[[], Connection]:
    """A function that connects when needed: through a grid, or to a simulation."""
    if grid is not None:
        registered = experiment.flower.identity == "registered"
        roster = RegisteredRoster(grid) if registered else ClaimedRoster(grid)
        return lambda: Connection(grid, roster)

    def start() -> Connection:
        check_simulated(experiment)
        from slimfl.flower.simulated import simulated

        return simulated(experiment.federation.devices, cores)

    return start


def check_simulated(experiment: Experiment) -> None:
    """Refuse settings that only real devices can have."""
    for key, real in (
        ("data.partition", experiment.data.partition == "own"),
        ("radio.gains", experiment.radio.gains == "measured"),
    ):
        if real:
            raise RequestError(f"{key} needs real devices; give --superlink, or change {key}")


def deployed(grid: Grid) -> ChooseEngine:
    """An engine choice that makes a `Simulation` use the devices behind a grid."""
    return partial(choose, grid=grid)
