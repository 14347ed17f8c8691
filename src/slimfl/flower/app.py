"""The ClientApp, which runs on a device, and the ServerApp on the machine of the SuperLink."""

from pathlib import Path

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from slimfl.flower.connect import deployed
from slimfl.flower.device import Equipment, Workbench
from slimfl.flower.messages import CONFIG, Order

client_app = ClientApp()

server_app = ServerApp()

_workbench = Workbench()


@client_app.train()
def train(message: Message, context: Context) -> Message:
    """Carry out the server's order."""
    answer = _workbench.work(Order.read(message.content), equipment(context))
    return Message(answer.record(), reply_to=message)


@client_app.query()
def who(message: Message, context: Context) -> Message:
    """Tell the server which device this is."""
    told = equipment(context).number
    record = ConfigRecord({"device": -1 if told is None else told})
    return Message(RecordDict({CONFIG: record}), reply_to=message)


def equipment(context: Context) -> Equipment:
    """The device's equipment from the node's configuration."""
    node = context.node_config
    number, data_dir, gain_file = (node.get(k) for k in ("partition-id", "data-dir", "gain-file"))
    models = str(node.get("models", "")).split(",")
    return Equipment(
        number=number if isinstance(number, int) else None,
        data_dir=Path(str(data_dir)) if data_dir else None,
        gain_file=Path(str(gain_file)) if gain_file else None,
        models=tuple(name.strip() for name in models if name.strip()),
    )


@server_app.main()
def serve(grid: Grid, context: Context) -> None:
    """Run the remaining rounds of a run folder."""
    # a device, which imports this file for every message, needs none of it
    from slimfl.round import RunFolder
    from slimfl.runs.api import resume

    folder = RunFolder.open(Path(str(context.run_config["run-folder"])))
    # limit Flower's retries: it would try forever, unnoticed, to reach a SuperLink that is gone
    invoker = getattr(grid, "_retry_invoker", None)
    if invoker is not None:
        invoker.max_time = folder.experiment().flower.wait_s
    modules = str(context.run_config.get("trust", "")).split(",")
    resume(folder.path, engine=deployed(grid), trust=filter(None, modules))
