"""Commands to a SuperLink: register devices, start a run, ask for its state, stop it.

They are those of `flwr supernode`, `flwr run`, `flwr list` and `flwr stop`. Flower's command line
cannot send a kit's control token or start a stored app, so its client is used directly.
"""

import hashlib
import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from flwr.common.serde import fab_to_proto, user_config_to_proto
from flwr.proto import control_pb2 as control
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.fab import Fab
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor

from slimfl.errors import RequestError, RunError
from slimfl.experiment.naming import trusted
from slimfl.files import read_regular_text
from slimfl.flower.signed import APP_ID, SignedApp, bundle


@dataclass(frozen=True)
class RunStatus:
    """The state of a run as Flower reports it."""

    status: str
    """`pending`, `starting`, `running` or `finished`."""
    details: str


@dataclass(frozen=True)
class SuperLink:
    """The address of a SuperLink, and the credentials for its control."""

    address: str
    root_certificates: Path | None = None
    """Verifies the SuperLink."""
    server: Path | None = None
    """The server's folder of a kit, with the control token and the signed app."""

    def __post_init__(self) -> None:
        host, _, port = self.address.rpartition(":")
        if not host or not port.isdigit():
            raise RequestError(
                f"--superlink takes HOST:PORT or a kit's folder, not {self.address!r}"
            )
        if self.root_certificates is None and not is_loopback(host.strip("[]")):
            raise RequestError(
                f"{self.address} is not this machine, so its certificate is needed; give it with "
                "--root-certificates, or give the kit's folder with --superlink"
            )

    def register(self, public_key: bytes, name: str) -> int:
        """Register a device's key under a name; returns the number of its node."""
        request = control.RegisterNodeRequest(public_key=public_key, name=name)
        with self._client() as client:
            return int(client.RegisterNode(request).node_id)

    def unregister(self, node: int) -> None:
        """Refuse a node from now on."""
        with self._client() as client:
            client.UnregisterNode(control.UnregisterNodeRequest(node_id=node))

    def nodes(self) -> dict[int, str]:
        """The state of every node: `registered`, `online`, `offline` or `unregistered`."""
        with self._client() as client:
            found = client.ListNodes(control.ListNodesRequest()).nodes_info
            return {int(node.node_id): str(node.status) for node in found}

    def start(self, run_folder: Path) -> int:
        """Start a run folder on the SuperLink; returns the run's number."""
        modules = ",".join(trusted())
        config = user_config_to_proto({"run-folder": str(run_folder.absolute()), "trust": modules})
        if self.server is not None:
            # without content: the SuperLink uses its stored app, with its signature
            fab, app_id = Fab(SignedApp.read(self.server).digest, b"", {}), APP_ID
        else:
            content = bundle()
            fab, app_id = Fab(hashlib.sha256(content).hexdigest(), content, {}), ""
        request = control.StartRunRequest(
            fab=fab_to_proto(fab), override_config=config, app_spec=app_id
        )
        with self._client() as client:
            reply = client.StartRun(request)
        if not reply.HasField("run_id"):
            raise RunError(f"the SuperLink at {self.address} did not start the run: {reply.note}")
        return int(reply.run_id)

    def status(self, run: int) -> RunStatus:
        """The state of a run."""
        with self._client() as client:
            found = client.ListRuns(control.ListRunsRequest(run_id=run)).run_dict
        if run not in found:
            return RunStatus("finished", "the SuperLink does not know this run any more")
        return RunStatus(found[run].status.status, found[run].status.details)

    def stop(self, run: int) -> None:
        """End a run."""
        with self._client() as client:
            client.StopRun(control.StopRunRequest(run_id=run))

    def healthy(self) -> bool:
        """True if it answers."""
        try:
            self.nodes()
        except RunError:
            return False
        return True

    @contextmanager
    def _client(self) -> Iterator[Any]:
        interceptors: list[Any] = [RuntimeVersionHttpInterceptor(component_name="slimfl")]
        if self.server is not None:
            interceptors.append(_Bearer(read_token(self.server)))
        certificate = self.root_certificates
        if certificate is not None and not certificate.is_file():
            raise RequestError(f"there is no certificate {certificate}; give its path")
        try:
            client = ControlHttpClient.from_server_address(
                server_address=self.address,
                insecure=certificate is None,
                root_certificates=certificate.read_bytes() if certificate else None,
                interceptors=interceptors,
            )
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise RequestError(f"{certificate} is not a certificate ({error})") from None
        try:
            yield client
        except httpx.HTTPStatusError as error:
            if error.response.status_code == httpx.codes.UNAUTHORIZED:
                raise RunError(
                    f"the SuperLink at {self.address} needs the control token of another kit; give "
                    "the folder of the kit that started it with --superlink"
                ) from error
            told = error.response.text.strip() or error
            raise RunError(f"the SuperLink at {self.address} refused: {told}") from error
        except httpx.HTTPError as error:
            raise UnreachableError(
                f"the SuperLink at {self.address} does not answer ({error}); start it, or check "
                "the address and the certificate"
            ) from error
        finally:
            client.close()


class _Bearer:
    """Adds the control token to requests, as an interceptor of Flower's client."""

    def __init__(self, token: str) -> None:
        self.token = token

    def intercept(self, context: Any, call_next: Any) -> Any:
        """Add the token to a request."""
        context.request.headers["authorization"] = f"Bearer {self.token}"
        return call_next(context)


def read_token(server: Path) -> str:
    """The secret that lets the owner of a kit command its SuperLink."""
    path = server / "control.token"
    try:
        token = read_regular_text(path).strip()
    except (OSError, ValueError) as error:
        raise RequestError(
            f"the control token {path} cannot be read ({error}); only the owner of the kit can "
            "control its server"
        ) from None
    if not (token.isascii() and token.isprintable() and len(token) >= 32):
        raise RequestError(f"the control token {path} is damaged; make a new kit")
    return token


class UnreachableError(RunError):
    """There is no SuperLink at the address."""


def is_address(host: str) -> bool:
    """True for an IP address without a zone."""
    try:
        return not getattr(ipaddress.ip_address(host), "scope_id", None)
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """True if only this machine can reach it."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)
