"""A kit on disk: writing one, reading one."""

import json
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from slimfl.errors import RequestError
from slimfl.flower.kit import templates
from slimfl.flower.superlink import SuperLink

KIT = "kit.toml"

#: The port of device 0's own process, on loopback; the others count up, to share a machine.
DEVICE_PORT = 9094


@dataclass(frozen=True)
class Kit:
    """The folder of a federation."""

    path: Path
    host: str
    port: int
    devices: int

    @classmethod
    def open(cls, path: Path) -> "Kit":
        """An existing kit."""
        try:
            tree = tomllib.loads((path / KIT).read_text())
            return cls(path.absolute(), tree["host"], tree["port"], tree["devices"])
        except FileNotFoundError:
            raise RequestError(
                f"{path} holds no kit; make one with `slimfl deploy init {path} --devices 3`"
            ) from None
        except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
            raise RequestError(f"{path / KIT} is damaged: {error!r}") from None

    @property
    def server(self) -> Path:
        """The folder for the server's machine."""
        return self.path / "server"

    def device(self, device: int) -> Path:
        """The folder for a device's machine."""
        return self.path / self.device_name(device)

    @staticmethod
    def device_name(device: int) -> str:
        """Under which its key is registered."""
        return f"device-{device}"

    @property
    def superlink(self) -> SuperLink:
        """The server as it is reached from its own machine."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return SuperLink(f"{host}:{self.port}", self.server / "ca.crt")

    @property
    def _registered(self) -> Path:
        return self.server / "devices.json"

    def registered(self) -> dict[int, int]:
        """The node of every device whose key the server knows, or knew."""
        try:
            known = json.loads(self._registered.read_text())
        except FileNotFoundError:
            return {}
        return {int(device): int(node) for device, node in known.items()}

    def write_registered(self, nodes: dict[int, int]) -> None:
        """Remember the nodes."""
        temporary = self._registered.with_suffix(".tmp")
        temporary.write_text(json.dumps({str(k): v for k, v in sorted(nodes.items())}))
        temporary.rename(self._registered)


def lay_out(
    path: Path,
    devices: int,
    host: str,
    port: int,
    *,
    device_port: int = DEVICE_PORT,
    data_dir: Path | None = None,
) -> Kit:
    """Write a new kit: all of it or nothing."""
    from slimfl.flower.kit import keys

    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise RequestError(f"{path} is not empty; choose another folder for the kit")
    kit = Kit(path.absolute(), host, port, devices)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        ca, server = temporary / "ca", temporary / "server"
        names = [kit.device_name(device) for device in range(devices)]
        temporary.parent.mkdir(parents=True, exist_ok=True)
        for folder in (temporary, ca, server, *(temporary / name for name in names)):
            folder.mkdir(mode=0o700)
        keys.write_authority_and_server(ca, server, host)
        for name in names:
            keys.write_node_key(temporary / name)
        _write_texts(temporary, kit, device_port, data_dir)
        if path.exists():
            path.rmdir()
        temporary.rename(path)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise RequestError(f"{path} cannot be written ({error.strerror}); choose another") from None
    return kit


def _write_texts(folder: Path, kit: Kit, device_port: int, data_dir: Path | None) -> None:
    address = kit.superlink.address
    loopback = kit.host in ("localhost", "127.0.0.1", "::1")
    bind = kit.host if loopback else "0.0.0.0"
    values = {"bind": bind, "port": kit.port, "address": address, "devices": kit.devices}
    script(folder / "server/start.sh", templates.SERVER_SCRIPT.substitute(values))
    unit = templates.UNIT.substitute(
        name="slimfl-superlink", what="the server of a federation", folder="server"
    )
    (folder / "server/slimfl-superlink.service").write_text(unit)
    compose = [templates.COMPOSE_SERVICE.substitute(name="server")]
    for device in range(kit.devices):
        name = kit.device_name(device)
        own = {**values, "device": device, "device_port": device_port + device}
        script(folder / name / "start.sh", templates.DEVICE_SCRIPT.substitute(own))
        settings = templates.DEVICE_SETTINGS.substitute(data_dir=data_dir or "")
        (folder / name / "device.env").write_text(settings)
        unit = templates.UNIT.substitute(
            name=f"slimfl-{name}", what=f"device {device} of a federation", folder=name
        )
        (folder / name / f"slimfl-{name}.service").write_text(unit)
        shutil.copy(folder / "server/ca.crt", folder / name / "ca.crt")
        compose.append(templates.COMPOSE_SERVICE.substitute(name=name))
    (folder / "compose.yaml").write_text(templates.COMPOSE_HEAD + "".join(compose))
    (folder / "experiment.toml").write_text(templates.EXPERIMENT.substitute(values))
    described = {"host": kit.host, "port": kit.port, "devices": kit.devices}
    (folder / KIT).write_text(tomli_w.dumps(described))


def script(path: Path, text: str) -> None:
    """Write a file that can be run."""
    path.write_text(text)
    path.chmod(0o755)
