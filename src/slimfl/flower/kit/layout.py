"""A kit on disk: writing one, reading one."""

import json
import secrets
import shutil
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import tomli_w

from slimfl.errors import RequestError
from slimfl.files import read_regular_text
from slimfl.flower.guard.gate import BODY_BYTES
from slimfl.flower.kit import addresses, proxy, templates
from slimfl.flower.superlink import SuperLink

KIT = "kit.toml"

#: The loopback port of device 0's own process; others count up, so that they can share a machine.
DEVICE_PORT = 9094

#: Limited, as a kit has a folder and a port for each.
MOST_DEVICES = 10_000

#: The largest number that Flower gives to a node.
_LARGEST_NODE = 2**64


@dataclass(frozen=True)
class Kit:
    """The folder of a federation."""

    path: Path
    host: str
    """The address of the server for devices."""
    port: int
    devices: int
    bind: str
    """The only address on which the server listens for devices."""
    control_port: int
    """The SuperLink's own port on loopback, or `port` if there is no proxy."""
    proxied: bool
    """True if nginx is between the devices and the SuperLink."""

    def __post_init__(self) -> None:
        addresses.check_host(self.host, "--host")
        addresses.check_host(self.bind, "--bind")
        for name in ("port", "control_port"):
            _whole(getattr(self, name), name, 1, 65535)
        _whole(self.devices, "devices", 1, MOST_DEVICES)
        if self.proxied and addresses.collide(self.bind, self.port, self.control_port):
            raise RequestError("the server's port and the control port are the same; change one")
        if not self.proxied and not addresses.is_loopback(self.bind):
            raise RequestError(
                f"{self.bind} can be reached from other machines, so it needs the proxy"
            )

    @classmethod
    def open(cls, path: Path) -> "Kit":
        """An existing kit."""
        try:
            tree = tomllib.loads(read_regular_text(path / KIT))
            return cls(path.absolute(), **_typed(tree))
        except (FileNotFoundError, NotADirectoryError):
            raise RequestError(
                f"{path} is not a kit; create one with `slimfl deploy init {path} --devices 3`"
            ) from None
        except KeyError as error:
            raise RequestError(
                f"{path / KIT} is damaged or from an older slimfl: {error} is missing; create a "
                "new kit with `slimfl deploy init`"
            ) from None
        except (OSError, TypeError, ValueError, RecursionError, RequestError) as error:
            raise RequestError(
                f"{path / KIT} is damaged ({error}); make a new kit with `slimfl deploy init`"
            ) from None

    @property
    def server(self) -> Path:
        """The folder for the server's machine."""
        return self.path / "server"

    def device(self, device: int) -> Path:
        """The folder for a device's machine."""
        return self.path / self.device_name(device)

    @staticmethod
    def device_name(device: int) -> str:
        """The name under which its key is registered."""
        return f"device-{device}"

    @property
    def address(self) -> str:
        """The address of the server for devices."""
        return addresses.joined(self.host, self.port)

    @property
    def control(self) -> tuple[str, int]:
        """The address on which the SuperLink itself listens."""
        return ("127.0.0.1", self.control_port) if self.proxied else (self.bind, self.port)

    @property
    def superlink(self) -> SuperLink:
        """The SuperLink as the kit's owner reaches it on its machine."""
        return SuperLink(addresses.joined(*self.control), self.server / "ca.crt", self.server)

    @property
    def _registered(self) -> Path:
        return self.server / "devices.json"

    def registered(self) -> dict[int, int]:
        """The node of every device whose key is or was registered."""
        try:
            known = json.loads(read_regular_text(self._registered))
            nodes = {
                int(device): _whole(node, device, 0, _LARGEST_NODE)
                for device, node in known.items()
            }
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError, RecursionError, RequestError) as error:
            raise RequestError(
                f"{self._registered} is damaged ({error}); write into it the node of every device "
                'as {"0": NODE}, or make a new kit with `slimfl deploy init`'
            ) from None
        return nodes

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
    bind: str | None = None,
    control_port: int | None = None,
    proxied: bool | None = None,
) -> Kit:
    """Write a new kit, completely or not at all.

    By default, nginx is used for a server that others can reach, and on loopback if it is
    installed.
    """
    from slimfl.flower.kit import keys
    from slimfl.flower.signed import Signer

    path = path.absolute()
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise RequestError(f"{path} is not empty; choose another folder for the kit")
    bind = bind or host
    if proxied is None:
        proxied = not addresses.is_loopback(bind) or proxy.find_nginx() is not None
    if control_port is None:
        control_port = port if not proxied else port + 1 if port < 65535 else port - 1
    kit = Kit(path, host, port, devices, bind, control_port, proxied)
    _whole(device_port, "device_port", 1, 65536 - devices)
    own_ports = range(device_port, device_port + devices)
    if addresses.is_loopback(bind) and (port in own_ports or control_port in own_ports):
        raise RequestError(
            f"the devices' ports, from {device_port} up, overlap with the server's; give another "
            "--device-port"
        )
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        ca, server = temporary / "ca", temporary / "server"
        names = [kit.device_name(device) for device in range(devices)]
        temporary.parent.mkdir(parents=True, exist_ok=True)
        for folder in (temporary, ca, server, *(temporary / name for name in names)):
            folder.mkdir(mode=0o700)
        keys.write_authority_and_server(ca, server, host)
        keys.write_private(server / "control.token", secrets.token_urlsafe(48).encode())
        signer = Signer.generate()
        keys.write_private(ca / "app_ed25519", signer.private)
        signer.sign_slimfl().write(server)
        for name in names:
            keys.write_node_key(temporary / name)
            (temporary / name / "trusted.yaml").write_text(f"{signer.name}: {signer.public}\n")
        _write_texts(temporary, kit, device_port, data_dir)
        if path.exists():
            path.rmdir()
        temporary.rename(path)
    except (OSError, UnicodeError) as error:
        shutil.rmtree(temporary, ignore_errors=True)
        reason = error.strerror if isinstance(error, OSError) else error
        raise RequestError(f"{path} cannot be written ({reason}); choose another") from None
    return kit


def _write_texts(folder: Path, kit: Kit, device_port: int, data_dir: Path | None) -> None:
    control_host, control_port = kit.control
    server = {
        "proxy": "--proxy nginx.conf " if kit.proxied else "",
        "host": quote(control_host),
        "port": control_port,
    }
    script(folder / "server/start.sh", templates.SERVER_SCRIPT.substitute(server))
    if kit.proxied:
        written = proxy.configuration(
            addresses.joined(kit.bind, kit.port), kit.superlink.address, BODY_BYTES
        )
        (folder / "server/nginx.conf").write_text(written)
    unit = templates.UNIT.substitute(
        name="slimfl-superlink", what="the server of a federation", folder="server"
    )
    (folder / "server/slimfl-superlink.service").write_text(unit)
    compose = [templates.COMPOSE_SERVICE.substitute(name="server")]
    for device in range(kit.devices):
        name = kit.device_name(device)
        own = {
            "address": quote(kit.address),
            "devices": kit.devices,
            "device": device,
            "device_port": device_port + device,
        }
        script(folder / name / "start.sh", templates.DEVICE_SCRIPT.substitute(own))
        settings = templates.DEVICE_SETTINGS.substitute(data_dir=quote(str(data_dir or "")))
        (folder / name / "device.env").write_text(settings)
        unit = templates.UNIT.substitute(
            name=f"slimfl-{name}", what=f"device {device} of a federation", folder=name
        )
        (folder / name / f"slimfl-{name}.service").write_text(unit)
        shutil.copy(folder / "server/ca.crt", folder / name / "ca.crt")
        compose.append(templates.COMPOSE_SERVICE.substitute(name=name))
    (folder / "compose.yaml").write_text(templates.COMPOSE_HEAD + "".join(compose))
    (folder / "experiment.toml").write_text(templates.EXPERIMENT.substitute(devices=kit.devices))
    described = {key: value for key, value in asdict(kit).items() if key != "path"}
    (folder / KIT).write_text(tomli_w.dumps(described))


def script(path: Path, text: str) -> None:
    """Write an executable file."""
    path.write_text(text)
    path.chmod(0o755)


def _typed(tree: dict[str, Any]) -> dict[str, Any]:
    """The kit's values, checked for their types."""
    types = {
        "host": str,
        "port": int,
        "devices": int,
        "bind": str,
        "control_port": int,
        "proxied": bool,
    }
    for name, wanted in types.items():
        if type(tree[name]) is not wanted:
            raise TypeError(
                f"{name} is not {'text' if wanted is str else f'of type {wanted.__name__}'}"
            )
    return {name: tree[name] for name in types}


def _whole(value: object, name: str, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise RequestError(f"{name} must be a whole number from {least} to {most}")
    return value
