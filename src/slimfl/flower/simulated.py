"""Flower's simulation engine inside this process: devices are Ray actors on this machine.

Flower calls a ServerApp with its grid and ends when that returns. Here the ServerApp hands over the
grid and waits, so that the round loop runs where it was started, with its progress bar and its run
folder. One simulation serves all runs of a process with the same number of devices; it ends with
the process, or when a different one is needed.
"""

import atexit
import concurrent.futures.thread  # noqa: F401  (its hook has to be registered before ours)
import logging
import os
import queue
import threading
import time
from typing import Any

from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from slimfl.errors import RunError
from slimfl.experiment.naming import trusted
from slimfl.flower.device import Equipment, Workbench
from slimfl.flower.local_ray import LocalRay
from slimfl.flower.messages import Order

#: Ray start-up and shutdown timeouts.
START_S, END_S = 180.0, 60.0

#: The ClientApp of a simulation, whose orders come from the process that started this one.
simulated_app = ClientApp()

_workbench = Workbench()


@simulated_app.train()
def train_simulated(message: Message, context: Context) -> Message:
    """Carry out the server's order as the device that it names."""
    answer = _workbench.work(Order.read(message.content), Equipment(simulated=True))
    return Message(answer.record(), reply_to=message)


class SimulatedFederation:
    """A running simulation of a number of devices on a number of cores."""

    def __init__(self, devices: int, cores: int) -> None:
        self.size = devices, cores
        self.trusted = trusted()  # its processes inherited this and do not see later changes
        self._grid: queue.Queue[Any] = queue.Queue()
        self._end = threading.Event()
        self._ray = LocalRay()
        # otherwise Flower leaves files in the user's home
        self._flower_home = os.environ.setdefault("FLWR_HOME", f"{self._ray.folder}/flwr")
        self._thread = threading.Thread(target=self._run, name="slimfl-flower", daemon=True)
        self._thread.start()
        try:
            grid = self._grid.get(timeout=START_S)
        except queue.Empty:
            self.close()
            raise RunError(f"Flower's simulation did not start within {START_S:g} s") from None
        if isinstance(grid, BaseException):
            self.close()
            raise RunError(f"Flower's simulation did not start: {grid}") from grid
        deadline = time.monotonic() + START_S
        while len(list(grid.get_node_ids())) < devices and time.monotonic() < deadline:
            time.sleep(0.05)
        self.grid: Grid = grid

    def _run(self) -> None:
        devices, cores = self.size
        try:
            from flwr.simulation import run_simulation  # imports Ray, which reads the environment

            for name in ("flwr", "ray"):
                logging.getLogger(name).setLevel(logging.ERROR)
            server_app = ServerApp()

            @server_app.main()
            def main(grid: Grid, context: Context) -> None:
                try:
                    self._ray.check()
                except RunError as error:
                    self._grid.put(error)
                    return
                self._grid.put(grid)
                self._end.wait()

            run_simulation(
                server_app=server_app,
                client_app=simulated_app,
                num_supernodes=devices,
                backend_config={
                    "init_args": {**self._ray.init_args, "num_cpus": cores},
                    "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
                },
            )
        except BaseException as error:  # stored for the main thread, which raises it
            self._grid.put(error)

    def close(self) -> None:
        """End the simulation and its processes."""
        self._end.set()
        self._thread.join(END_S)
        if self._flower_home.startswith(str(self._ray.folder)):
            os.environ.pop("FLWR_HOME", None)
        self._ray.close()


_running: SimulatedFederation | None = None


def running_simulation(devices: int, cores: int) -> Grid:
    """The message service of a simulation of that size, which is started if necessary."""
    global _running
    if _running is None or _running.size != (devices, cores) or _running.trusted != trusted():
        close()
        _running = SimulatedFederation(devices, cores)
    return _running.grid


def close() -> None:
    """End the simulation of this process, if there is one."""
    global _running
    if _running is not None:
        _running.close()
        _running = None


# a hook of concurrent.futures waits for Flower's threads before exit handlers run; hooks run in
# reverse order, so this one ends the simulation first
getattr(threading, "_register_atexit", atexit.register)(close)
