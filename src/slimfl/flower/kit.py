"""The deployment kit: everything that a federation of separate machines needs, in one folder.

The folder has::

    kit.toml          where the server is, how many devices there are
    ca/               the authority that signed the server's certificate, and the key that signed
                      the app that devices carry out; keep both keys off-line
    server/           for the machine of the server: certificate, key, control token, signed app,
                      nginx's configuration, start script, systemd unit
    device-0/ ...     for the machine of each device: node key, start script, systemd unit
    experiment.toml   a description to begin with

Copy each folder to its machine; nothing else is needed there but slimfl. The texts are made from
those in `kit_files`.
"""

import json
import os
import re
import secrets
import shutil
import tomllib
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import pydantic
import tomli_w
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import Field

from slimfl.errors import RequestError
from slimfl.files import read_regular_text
from slimfl.flower import keys
from slimfl.flower.gate import BODY_BYTES
from slimfl.flower.signed import Signer, bundle
from slimfl.flower.superlink import SuperLink, is_address, is_loopback
from slimfl.offline import SETTINGS

KIT = "kit.toml"

#: The loopback port of device 0's own process; others count up, so that they can share a machine.
DEVICE_PORT = 9094

NO_NGINX = (
    "the server's address is served by nginx, which is not installed; install it "
    "(on Debian: apt install nginx-light)"
)

#: The calls of a device with a registered key, which nginx forwards.
CALLS = (
    "activate-node",
    "deactivate-node",
    "send-node-heartbeat",
    "pull-messages",
    "push-messages",
    "get-run",
    "get-fab",
    "push-object",
    "pull-object",
    "confirm-message-received",
)

_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")

Port = Annotated[int, Field(ge=1, le=65535)]

#: The nodes of devices by number; the largest number is what Flower gives at most.
_Nodes = pydantic.TypeAdapter(dict[int, Annotated[int, Field(ge=0, lt=2**64, strict=True)]])


@pydantic.dataclasses.dataclass(frozen=True, config={"strict": True})
class Kit:
    """The folder of a federation."""

    path: Path
    host: str
    """The address of the server for devices."""
    port: Port
    devices: Annotated[int, Field(ge=1, le=10_000)]
    """Limited, as each has a folder and a port."""
    bind: str
    """The only address on which the server listens for devices."""
    control_port: Port
    """The SuperLink's own port on loopback, or `port` if there is no proxy."""
    proxied: bool
    """True if nginx is between the devices and the SuperLink."""

    def __post_init__(self) -> None:
        for name in ("host", "bind"):
            host = getattr(self, name)
            if not (is_address(host) or (len(host) <= 253 and _NAME.fullmatch(host))):
                raise RequestError(
                    f"--{name} takes a name such as fl.example.org or an address, not {host!r}"
                )
        # at these, the server would take the SuperLink's port on 127.0.0.1
        overlapping = self.bind in ("localhost", "127.0.0.1", "0.0.0.0", "::")
        if self.proxied and overlapping and self.port == self.control_port:
            raise RequestError("the server's port and the control port are the same; change one")
        if not self.proxied and not is_loopback(self.bind):
            raise RequestError(
                f"{self.bind} can be reached from other machines, so it needs the proxy"
            )

    @classmethod
    def open(cls, path: Path) -> "Kit":
        """An existing kit."""
        try:
            tree = tomllib.loads(read_regular_text(path / KIT))
            return cls(path=path.absolute(), **tree)
        except (FileNotFoundError, NotADirectoryError):
            raise RequestError(
                f"{path} is not a kit; create one with `slimfl deploy init {path} --devices 3`"
            ) from None
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False)[0]
            reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        except (OSError, TypeError, ValueError, RecursionError, RequestError) as error:
            reason = str(error)
        raise RequestError(
            f"{path / KIT} is damaged or from an older slimfl ({reason}); make a new kit with "
            "`slimfl deploy init`"
        )

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
        return joined(self.host, self.port)

    @property
    def control(self) -> tuple[str, int]:
        """The address on which the SuperLink itself listens."""
        return ("127.0.0.1", self.control_port) if self.proxied else (self.bind, self.port)

    @property
    def superlink(self) -> SuperLink:
        """The SuperLink as the kit's owner reaches it on its machine."""
        return SuperLink(joined(*self.control), self.server / "ca.crt", self.server)

    @property
    def _registered(self) -> Path:
        return self.server / "devices.json"

    def registered(self) -> dict[int, int]:
        """The node of every device whose key is or was registered."""
        try:
            return _Nodes.validate_python(json.loads(read_regular_text(self._registered)))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            reason = str(error).partition("\n")[0]
            raise RequestError(
                f"{self._registered} is damaged ({reason}); write into it the node of every device "
                'as {"0": NODE}, or make a new kit with `slimfl deploy init`'
            ) from None

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

    Args:
        path: A folder that is empty or does not exist.
        devices: Number of devices.
        host: Name or address at which the devices reach the server.
        port: The server's port.
        device_port: Loopback port of device 0; each further device uses the next one.
        data_dir: The folder of the devices' data, if it is the same on all.
        bind: The address to listen on; `host` by default.
        control_port: The SuperLink's loopback port behind nginx; the one after `port` by default.
        proxied: Whether nginx serves the address. By default it does if others can reach the
            address, and on loopback if it is installed.
    """
    path = path.absolute()
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise RequestError(f"{path} is not empty; choose another folder for the kit")
    bind = bind or host
    if proxied is None:
        proxied = not is_loopback(bind) or find_nginx() is not None
    if control_port is None:
        control_port = port if not proxied else port + 1 if port < 65535 else port - 1
    kit = Kit(path, host, port, devices, bind, control_port, proxied)
    own_ports = range(device_port, device_port + devices)
    if own_ports.stop > 65536:
        raise RequestError(f"--device-port leaves no ports for {devices} devices; give a lower one")
    if is_loopback(bind) and (port in own_ports or control_port in own_ports):
        raise RequestError(
            f"the devices' ports, from {device_port} up, overlap with the server's; give another "
            "--device-port"
        )
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(mode=0o700, parents=True)
        _write_secrets(temporary, kit)
        _write_texts(temporary, kit, device_port, data_dir)
        if path.exists():
            path.rmdir()
        temporary.rename(path)
    except (OSError, UnicodeError) as error:
        shutil.rmtree(temporary, ignore_errors=True)
        reason = error.strerror if isinstance(error, OSError) else error
        raise RequestError(f"{path} cannot be written ({reason}); choose another") from None
    return kit


def _write_secrets(folder: Path, kit: Kit) -> None:
    ca, server = folder / "ca", folder / "server"
    names = [kit.device_name(device) for device in range(kit.devices)]
    for each in (ca, server, *(folder / name for name in names)):
        each.mkdir(mode=0o700)
    keys.write_authority_and_server(ca, server, kit.host)
    keys.write_private(server / "control.token", secrets.token_urlsafe(48).encode())
    signer = Signer.generate()
    keys.write_private(ca / "app_ed25519", signer.private)
    signer.sign(bundle()).write(server)
    for name in names:
        keys.write_node_key(folder / name)
        (folder / name / "trusted.yaml").write_text(f"{signer.name}: {signer.public}\n")
        shutil.copy(server / "ca.crt", folder / name / "ca.crt")


def _write_texts(folder: Path, kit: Kit, device_port: int, data_dir: Path | None) -> None:
    def write(template: str, to: str, **values: Any) -> None:
        path = folder / to
        path.write_text(_text(template, **values))
        if path.suffix == ".sh":
            path.chmod(0o755)

    exports = "\n".join(f"export {name}={quote(value)}" for name, value in SETTINGS.items())
    host, port = kit.control
    write(
        "server.sh",
        "server/start.sh",
        exports=exports,
        host=quote(host),
        port=port,
        proxied=kit.proxied,
    )
    if kit.proxied:
        (folder / "server/nginx.conf").write_text(
            nginx_conf(joined(kit.bind, kit.port), kit.superlink.address)
        )
    units = {"server": ("slimfl-superlink", "the server of a federation")}
    for device in range(kit.devices):
        name = kit.device_name(device)
        write(
            "device.sh",
            f"{name}/start.sh",
            exports=exports,
            address=quote(kit.address),
            device=device,
            devices=kit.devices,
            port=device_port + device,
        )
        write("device.env", f"{name}/device.env", data_dir=quote(str(data_dir or "")))
        units[name] = f"slimfl-{name}", f"device {device} of a federation"
    for place, (unit, what) in units.items():
        write("systemd.service", f"{place}/{unit}.service", name=unit, what=what, folder=place)
    write("experiment.toml", "experiment.toml", devices=kit.devices)
    described = {key: value for key, value in asdict(kit).items() if key != "path"}
    (folder / KIT).write_text(tomli_w.dumps(described))


def nginx_conf(listen: str, superlink: str, body_bytes: int = BODY_BYTES) -> str:
    """The configuration of nginx.

    Args:
        listen: The address for the devices, as HOST:PORT.
        superlink: The SuperLink's address on this machine.
        body_bytes: The longest body of a request.
    """
    calls = "|".join(CALLS)
    return _text(
        "nginx.conf", listen=listen, superlink=superlink, body_bytes=body_bytes, calls=calls
    )


def _text(template: str, **values: Any) -> str:
    """A file of a kit; what a shell reads has to be quoted by the caller."""
    folder = FileSystemLoader(Path(__file__).with_name("kit_files"))
    texts = Environment(loader=folder, undefined=StrictUndefined, keep_trailing_newline=True)
    return texts.get_template(template).render(values)


def find_nginx() -> str | None:
    """The path of nginx, which Debian installs in a folder for administrators."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin")


def joined(host: str, port: int) -> str:
    """HOST:PORT."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
