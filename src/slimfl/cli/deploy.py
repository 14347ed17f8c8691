"""`slimfl deploy`: a federation of separate machines, or its processes on this one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slimfl.cli.output import Reply, table
from slimfl.cli.settings import command
from slimfl.errors import RequestError
from slimfl.extras import why_not_deploy

if TYPE_CHECKING:
    from slimfl.flower.federation import Federation

Folder = Annotated[Path, typer.Argument(help="The kit's folder.", show_default=False)]


@command()
def init(
    folder: Folder,
    devices: Annotated[int, typer.Option(help="Number of devices.", min=1, max=10_000)] = 3,
    host: Annotated[
        str, typer.Option(help="Host name or address at which the devices reach the server.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The server's port.", min=1, max=65535)] = 8000,
    device_port: Annotated[
        int,
        typer.Option(
            help="Loopback port of device 0; each further device uses the next one.",
            min=1,
            max=65535,
        ),
    ] = 9094,
    bind: Annotated[
        str | None,
        typer.Option(help="Address to listen on.", show_default="the address of --host"),
    ] = None,
    control_port: Annotated[
        int | None,
        typer.Option(
            help="Loopback port of the SuperLink, for the owner of the kit.",
            min=1,
            max=65535,
            show_default="the port after --port",
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the devices' data, if it is the same on all.",
            show_default="set on each device",
        ),
    ] = None,
) -> Reply:
    """Write certificates, node keys, configurations and start scripts."""
    _check_extra()
    from slimfl.flower.kit import lay_out

    kit = lay_out(
        folder,
        devices,
        host,
        port,
        device_port=device_port,
        data_dir=data_dir.absolute() if data_dir else None,
        bind=bind,
        control_port=control_port,
    )
    way_on = (
        f"{folder} describes a federation of {devices} devices with the server at {kit.address}. "
        f"To run it on this machine: slimfl deploy up {folder}. To run it on separate machines, "
        "copy server/ and each device-*/ to its machine; see docs/deployment.md."
    )
    return Reply({"kit": kit.path, "address": kit.address, "devices": devices}, (), [way_on])


@command()
def up(
    folder: Folder,
    server_only: Annotated[
        bool, typer.Option("--server-only", help="Start only the server, and register the devices.")
    ] = False,
) -> Reply:
    """Start the server and the devices on this machine.

    Returns when all of them are running.
    """
    federation = _federation(folder)
    federation.up(server_only)
    return _state(federation)


@command()
def status(folder: Folder) -> Reply:
    """Show local processes and the devices that the server sees."""
    return _state(_federation(folder))


@command()
def down(folder: Folder) -> Reply:
    """Stop all processes of the kit on this machine."""
    federation = _federation(folder)
    federation.down()
    return _state(federation)


@command()
def register(folder: Folder) -> Reply:
    """Register the keys of all devices with a running server.

    Use it for a server that `slimfl deploy up` did not start.
    """
    federation = _federation(folder)
    federation.register()
    return _state(federation)


@command()
def revoke(
    folder: Folder,
    device: Annotated[int, typer.Argument(help="The number of the device.", min=0)],
) -> Reply:
    """Revoke the key of a device; the server refuses it from now on."""
    federation = _federation(folder)
    federation.revoke(device)
    return _state(federation)


def _check_extra() -> None:
    obstacle = why_not_deploy()
    if obstacle is not None:
        raise RequestError(f"deployments are not available: {obstacle}")


def _federation(folder: Path) -> "Federation":
    _check_extra()
    from slimfl.flower.federation import Federation
    from slimfl.flower.kit import Kit

    return Federation(Kit.open(folder))


def _state(federation: "Federation") -> Reply:
    found, address = federation.status(), federation.kit.address
    rows = [{"": r["name"], "state": r["state"], "process": str(r["pid"] or "")} for r in found]
    document = {"address": address, "processes": found}
    return Reply(document, [table(rows, f"SuperLink at {address}")])
