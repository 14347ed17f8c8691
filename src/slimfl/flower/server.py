"""The ServerApp: resumes a run folder on the machine of the SuperLink."""

from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from slimfl.flower.connect import deployed
from slimfl.round import RunFolder
from slimfl.runs.api import resume

server_app = ServerApp()


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the remaining rounds of the run folder."""
    folder = RunFolder.open(Path(str(context.run_config["run-folder"])))
    # limit Flower's retries: it would try forever, unnoticed, to reach a SuperLink that is gone
    invoker = getattr(grid, "_retry_invoker", None)
    if invoker is not None:
        invoker.max_time = folder.experiment().flower.wait_s
    modules = str(context.run_config.get("trust", "")).split(",")
    resume(folder.path, engine=deployed(grid), trust=filter(None, modules))
