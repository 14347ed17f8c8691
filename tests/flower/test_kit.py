"""The kit on disk: keys, certificates and scripts."""

import socket
import ssl
import stat
import subprocess
import sys

import pytest
import tomli_w
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key
from federations import free_ports, until

from slimfl.errors import RequestError, RunError
from slimfl.flower.federation import Processes
from slimfl.flower.kit import Kit, lay_out
from slimfl.flower.processes import living
from slimfl.flower.signed import bundle, files
from slimfl.flower.superlink import SuperLink
from tests import asking


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kit") / "federation"
    return lay_out(folder, 3, "fl.example.org", 9443, device_port=20000, data_dir=folder / "data")


def test_secrets_are_their_owners_alone_and_stand_nowhere_else(kit):
    keys = sorted(str(key.relative_to(kit.path)) for key in kit.path.rglob("*.key"))
    assert keys == [
        "ca/ca.key", "device-0/node.key", "device-1/node.key", "device-2/node.key",
        "server/superlink.key",
    ]  # fmt: skip
    secrets = [kit.path / name for name in (*keys, "server/control.token", "ca/app_ed25519")]

    def body(file):
        return "".join(line for line in file.read_text().splitlines() if "-----" not in line)

    assert len({body(secret) for secret in secrets}) == len(secrets)
    files = [file for file in kit.path.rglob("*") if file.is_file()]
    for secret in secrets:
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
        assert stat.S_IMODE(secret.parent.stat().st_mode) == 0o700
        assert [file for file in files if body(secret) in body(file)] == [secret]
    assert len((kit.server / "control.token").read_text()) >= 64
    other = lay_out(kit.path.with_name("other"), 1, "127.0.0.1", 9443)
    assert body(other.server / "control.token") != body(kit.server / "control.token")


def test_the_server_is_known_by_its_name_and_on_its_own_machine(kit):
    certificate = x509.load_pem_x509_certificate((kit.server / "superlink.crt").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["fl.example.org", "localhost"]
    assert [str(a) for a in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    authority = x509.load_pem_x509_certificate((kit.server / "ca.crt").read_bytes())
    certificate.verify_directly_issued_by(authority)
    context = ssl.create_default_context(cafile=kit.device(1) / "ca.crt")
    context.load_cert_chain(kit.server / "superlink.crt", kit.server / "superlink.key")


def test_every_device_has_a_key_of_its_own(kit):
    public = []
    for device in range(3):
        private = load_ssh_private_key((kit.device(device) / "node.key").read_bytes(), None)
        told = load_ssh_public_key((kit.device(device) / "node.pub").read_bytes())
        assert private.public_key().public_numbers() == told.public_numbers()
        assert private.curve.name == "secp384r1"
        public.append(told.public_numbers())
    assert len(set(public)) == 3


def test_scripts_are_shell_and_leave_nothing_insecure(kit):
    for script in kit.path.rglob("start.sh"):
        assert subprocess.run(["sh", "-n", str(script)]).returncode == 0
        text = script.read_text()
        assert "--insecure" not in text
        assert "FLWR_TELEMETRY_ENABLED=0" in text
        assert "{{" not in text
    assert "--enable-supernode-auth" in (kit.server / "start.sh").read_text()
    assert "--superlink fl.example.org:9443" in (kit.device(2) / "start.sh").read_text()
    assert "--port 20002" in (kit.device(2) / "start.sh").read_text()
    assert str(kit.path / "data") in (kit.device(0) / "device.env").read_text()


def test_a_server_listens_on_the_named_address_and_its_superlink_on_loopback(kit, tmp_path):
    assert "listen fl.example.org:9443 ssl;" in (kit.server / "nginx.conf").read_text()
    assert "--host 127.0.0.1 --port 9444" in (kit.server / "start.sh").read_text()
    assert not [f for f in kit.server.iterdir() if b"0.0.0.0" in f.read_bytes()]
    bound = lay_out(tmp_path / "b", 1, "fl.example.org", 443, bind="10.1.2.3", control_port=7000)
    assert "listen 10.1.2.3:443 ssl;" in (bound.server / "nginx.conf").read_text()
    assert "https://127.0.0.1:7000$uri;" in (bound.server / "nginx.conf").read_text()
    assert "--superlink fl.example.org:443" in (bound.device(0) / "start.sh").read_text()
    assert bound.superlink.address == "127.0.0.1:7000"


def test_a_server_on_loopback_does_without_nginx_where_there_is_none(tmp_path, monkeypatch):
    from slimfl.flower import federation
    from slimfl.flower import kit as kits
    from slimfl.flower.federation import Federation

    monkeypatch.setattr(kits, "find_nginx", lambda: None)
    monkeypatch.setattr(federation, "find_nginx", lambda: None)
    local = lay_out(tmp_path / "local", 1, "127.0.0.1", 9443)
    assert "--host 127.0.0.1 --port 9443" in (local.server / "start.sh").read_text()
    assert "--proxy" not in (local.server / "start.sh").read_text()
    assert local.superlink.address == local.address == "127.0.0.1:9443"
    others = lay_out(tmp_path / "others", 1, "192.0.2.7", 9443)
    with pytest.raises(RequestError, match=r"nginx.*apt install nginx-light"):
        Federation(others).up()
    with pytest.raises(RequestError, match="needs the proxy"):
        lay_out(tmp_path / "bare", 1, "192.0.2.7", 9443, proxied=False)
    assert not (tmp_path / "bare").exists()


@pytest.mark.parametrize("taken", ["port", "control_port"])
def test_a_port_in_use_is_told_before_anything_starts(tmp_path, taken):
    from slimfl.flower.federation import Federation
    from slimfl.flower.kit import find_nginx

    if find_nginx() is None:
        pytest.skip("nginx is not installed")
    port, control_port = free_ports(2)
    local = lay_out(tmp_path / "kit", 1, "127.0.0.1", port, control_port=control_port)
    number = {"port": port, "control_port": control_port}[taken]
    told = rf"on 127\.0\.0\.1:{number} \(Address already in use\); .* another --port"
    with (
        socket.create_server(("127.0.0.1", number)),
        pytest.raises(RequestError, match=told),
    ):
        Federation(local).up()
    assert not (local.path / "logs").exists(), "a process was started"


def test_a_server_that_takes_commands_from_anybody_is_ended(tmp_path, monkeypatch):
    from slimfl.flower.federation import Federation

    federation = Federation(Kit(tmp_path, **WHOLE))
    asked, ended = [], []
    monkeypatch.setattr(SuperLink, "nodes", lambda link: asked.append(link.server) or {})
    monkeypatch.setattr(federation, "down", lambda: ended.append(True))
    with pytest.raises(RunError, match="without the control token"):
        federation.register()
    assert (asked, ended) == ([None], [True])


def test_every_device_trusts_the_key_that_signed_the_app(kit):
    import yaml

    from slimfl.flower.signed import SignedApp

    app = SignedApp.read(kit.server)
    assert app.content == bundle()
    for device in range(3):
        (name,) = yaml.safe_load((kit.device(device) / "trusted.yaml").read_text())
        assert name in app.verifications
        assert "--trusted-entities trusted.yaml" in (kit.device(device) / "start.sh").read_text()


#: What a shell must not take for its own.
ODD = """a b;echo "x"'y'$(touch Z)`touch Z`\n*&|<>#~"""


def test_odd_characters_stay_data_in_scripts(tmp_path):
    local = lay_out(tmp_path / "kit", 1, "127.0.0.1", 9443, data_dir=tmp_path / ODD)
    folder = local.device(0)
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin/python3"
    python.write_text('#!/bin/sh\nprintf %s "$DATA_DIR" >"$OUT"\n')
    python.chmod(0o755)
    environment = {"PATH": "/usr/bin:/bin", "SLIMFL_BIN": str(tmp_path / "bin"), "OUT": "out"}
    done = subprocess.run(["sh", str(folder / "start.sh")], env=environment, cwd=tmp_path)
    assert done.returncode == 0
    assert (folder / "out").read_text() == str(tmp_path / ODD)
    assert not list(tmp_path.rglob("Z"))


@pytest.mark.parametrize(
    "host", ["", "a b", "$(x)", "a/b", "-x", "[::1]", "a\nb", "fe80::1%eth0", "a" * 64, "é"]
)
def test_a_host_is_a_name_or_an_address(tmp_path, host):
    for names in ({"host": host}, {"host": "10.0.0.1", "bind": host or " "}):
        with pytest.raises(RequestError, match="address"):
            lay_out(tmp_path / "kit", 1, port=9443, **names)
        assert not (tmp_path / "kit").exists()


@pytest.mark.parametrize(
    "host", ["fl.example.org", "hub", "10.0.0.5", "::1", "2001:db8::7", "x-1.y"]
)
def test_names_and_addresses_are_taken(tmp_path, host):
    made = lay_out(tmp_path / "kit", 1, host, 9443)
    assert Kit.open(made.path) == made


def test_ports_do_not_meet(tmp_path):
    for ports in ({"device_port": 9440}, {"control_port": 9443}, {"device_port": 65535}):
        with pytest.raises(RequestError, match="port"):
            lay_out(tmp_path / "kit", 5, "127.0.0.1", 9443, proxied=True, **ports)


WHOLE = {
    "host": "127.0.0.1", "port": 9443, "devices": 2, "bind": "127.0.0.1", "control_port": 9443,
    "proxied": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"devices": 10**12}, "devices: "), ({"devices": "3"}, "devices: "), ({"port": 0}, "port: "),
     ({"host": "a b"}, "address"), ({"bind": "0.0.0.0"}, "needs the proxy"),
     ({"proxied": 1}, "proxied: "), ({"proxied": None}, r"older slimfl \(proxied: ")],
    ids=str,
)  # fmt: skip
def test_a_damaged_description_is_told_in_a_sentence_at_once(tmp_path, change, reason):
    """Among them a number of devices that a status would list for hours."""
    path = tmp_path / "kit.toml"
    path.write_text(tomli_w.dumps(WHOLE))
    assert Kit.open(tmp_path).devices == 2
    path.write_text(tomli_w.dumps({k: v for k, v in {**WHOLE, **change}.items() if v is not None}))
    with pytest.raises(RequestError, match=rf"kit\.toml is damaged.*{reason}"):
        Kit.open(tmp_path)


@pytest.mark.parametrize("contents", [b"\xff\xfe", b"= =", b"a = " + b"[" * 5000])
def test_a_description_that_is_no_toml_is_told_in_a_sentence(tmp_path, contents):
    (tmp_path / "kit.toml").write_bytes(contents)
    with pytest.raises(RequestError, match="damaged"):
        Kit.open(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", '{"x": 1}', '{"0": "1"}', '{"0": -1}', "[" * 100_000])
def test_a_damaged_list_of_devices_is_told_in_a_sentence(tmp_path, text):
    made = Kit(tmp_path, **WHOLE)
    made.server.mkdir()
    (made.server / "devices.json").write_text(text)
    with pytest.raises(RequestError, match=r"devices\.json is damaged"):
        made.registered()


@pytest.mark.parametrize("text", ["", "ssh-rsa x", "nonsense"])
def test_a_damaged_public_key_is_told_in_a_sentence(tmp_path, text):
    from slimfl.flower.keys import read_public_key

    (tmp_path / "node.pub").write_text(text)
    with pytest.raises(RequestError, match="is not a public key"):
        read_public_key(tmp_path / "node.pub")


def test_units_name_every_process(kit):
    units = sorted(unit.name for unit in kit.path.rglob("*.service"))
    assert units == [*(f"slimfl-device-{k}.service" for k in range(3)), "slimfl-superlink.service"]
    for unit in kit.path.rglob("*.service"):
        assert f"/opt/slimfl/{unit.parent.name}/start.sh" in unit.read_text()


def test_the_experiment_in_the_kit_is_one(kit):

    (described,) = asking.load(kit.path / "experiment.toml")
    assert described.engine == "flower"
    assert described.federation.devices == 3


def test_a_kit_is_found_again_and_a_folder_in_use_is_left_alone(kit, tmp_path):
    assert Kit.open(kit.path) == kit
    with pytest.raises(RequestError, match="not empty"):
        lay_out(kit.path, 1, "127.0.0.1", 1)
    with pytest.raises(RequestError, match="slimfl deploy init"):
        Kit.open(tmp_path)
    (tmp_path / "kit.toml").write_text("host = 3")
    with pytest.raises(RequestError, match="damaged"):
        Kit.open(tmp_path)
    assert not list(kit.path.parent.glob(".*"))


def test_another_machine_is_not_talked_to_without_a_certificate(tmp_path):
    with pytest.raises(RequestError, match="--root-certificates"):
        SuperLink("192.0.2.7:8000")
    with pytest.raises(RequestError, match="HOST:PORT"):
        SuperLink("somewhere")
    with pytest.raises(RequestError, match="no certificate"):
        SuperLink("192.0.2.7:8000", tmp_path / "none.crt").nodes()


def test_a_superlink_that_is_not_there_is_told_in_one_sentence():
    link = SuperLink("127.0.0.1:9")
    assert not link.healthy()
    with pytest.raises(RunError, match=r"SuperLink at 127\.0\.0\.1:9 does not answer"):
        link.nodes()


def test_the_bundle_carries_two_small_files():
    import io
    import zipfile

    with zipfile.ZipFile(io.BytesIO(bundle())) as archive:
        assert set(files()) <= set(archive.namelist())
    compile(files()["slimfl_app.py"], "slimfl_app.py", "exec")


#: Starts a child in a session of its own, as Flower's helpers are, that ignores a polite request.
STUBBORN = """
import subprocess, sys, time
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
child += "print('ready', flush=True); time.sleep(60)"
subprocess.Popen([sys.executable, "-c", child], start_new_session=True)
time.sleep(60)
"""


@pytest.mark.parametrize("died_first", [False, True])
def test_all_that_a_process_started_ends_with_it(tmp_path, died_first):
    processes, log = Processes(tmp_path), tmp_path / "logs" / "tree.log"
    processes.start("tree", [sys.executable, "-c", STUBBORN], log, {})
    until(lambda: "ready" in log.read_text(), "the child did not start")
    family = processes.family(["tree"])
    assert len(family) == 2
    parent = processes.running()["tree"]
    assert parent in family
    assert Processes(tmp_path / "other").family(["tree"]) == processes.family(["other"]) == []
    if died_first:
        parent.kill()
        until(lambda: not processes.running(), "it did not end")
        assert processes.family(["tree"]) == [one for one in family if one != parent]
    processes.end(["tree"], patience_s=2)
    assert living(family) == []
    assert processes.running() == {}
