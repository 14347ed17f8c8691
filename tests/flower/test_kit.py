"""The kit on disk: whose keys, which certificates, which scripts."""

import os
import ssl
import stat
import subprocess

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from slimfl.errors import RequestError, RunError
from slimfl.flower.bundle import bundle, files
from slimfl.flower.kit import Kit, lay_out
from slimfl.flower.kit.processes import Processes
from slimfl.flower.superlink import SuperLink


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kit") / "federation"
    return lay_out(folder, 3, "fl.example.org", 9443, device_port=20000, data_dir=folder / "data")


def test_private_keys_are_readable_by_their_owner_alone(kit):
    keys = sorted(kit.path.rglob("*.key"))
    assert [str(key.relative_to(kit.path)) for key in keys] == [
        "ca/ca.key", "device-0/node.key", "device-1/node.key", "device-2/node.key",
        "server/superlink.key",
    ]  # fmt: skip
    for key in keys:
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700


def test_private_keys_stand_where_they_are_needed_and_nowhere_else(kit):
    def joined(file):
        return "".join(line for line in file.read_text().splitlines() if "-----" not in line)

    bodies = {key: joined(key) for key in kit.path.rglob("*.key")}
    assert len(set(bodies.values())) == len(bodies) >= kit.devices
    for file in kit.path.rglob("*"):
        if file.is_file():
            holds = [key for key, body in bodies.items() if body in joined(file)]
            assert holds in ([], [file])


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
        assert "$$" not in text
    assert "--enable-supernode-auth" in (kit.server / "start.sh").read_text()
    assert "--superlink fl.example.org:9443" in (kit.device(2) / "start.sh").read_text()
    assert "--port 20002" in (kit.device(2) / "start.sh").read_text()
    assert str(kit.path / "data") in (kit.device(0) / "device.env").read_text()


def test_a_server_on_this_machine_listens_on_loopback_alone(kit, tmp_path):
    assert "--host 0.0.0.0" in (kit.server / "start.sh").read_text()
    local = lay_out(tmp_path / "local", 1, "127.0.0.1", 9443)
    assert "--host 127.0.0.1" in (local.server / "start.sh").read_text()


def test_units_and_the_compose_file_name_every_process(kit):
    units = sorted(unit.name for unit in kit.path.rglob("*.service"))
    assert units == [*(f"slimfl-device-{k}.service" for k in range(3)), "slimfl-superlink.service"]
    for unit in kit.path.rglob("*.service"):
        assert f"/opt/slimfl/{unit.parent.name}/start.sh" in unit.read_text()
    compose = (kit.path / "compose.yaml").read_text()
    assert compose.startswith("# NOT TRIED")
    assert all(f"./{name}:/kit" in compose for name in ("server", "device-0", "device-2"))


def test_the_experiment_in_the_kit_is_one(kit):
    from slimfl import config

    (described,) = config.load(kit.path / "experiment.toml")
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


class TestProcesses:
    def test_all_that_a_process_started_ends_with_it(self, tmp_path):
        processes = Processes(tmp_path / "processes.json")
        # a child in a session of its own, as Flower's helpers are, that ignores a polite request
        script = (
            "import subprocess, sys, time\n"
            "child = 'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);'\n"
            "child += 'print(1, flush=True); time.sleep(60)'\n"
            "subprocess.Popen([sys.executable, '-c', child], start_new_session=True)\n"
            "time.sleep(60)\n"
        )
        import sys
        import time

        log = tmp_path / "logs" / "tree.log"
        processes.start("tree", [sys.executable, "-c", script], log, {})
        parent = processes.running()["tree"].pid
        deadline = time.monotonic() + 60
        while "1" not in log.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        listed = ["ps", "-A", "-o", "pid=,ppid=,stat="]
        table = [line.split() for line in subprocess.check_output(listed, text=True).splitlines()]
        children = [pid for pid, parent_of, _ in table if parent_of == str(parent)]
        assert len(children) == 1
        processes.end(["tree"], patience_s=2)
        after = [line.split() for line in subprocess.check_output(listed, text=True).splitlines()]
        alive = {pid for pid, _, state in after if not state.startswith("Z")}
        assert not alive & {str(parent), *children}
        assert processes.all() == []

    def test_both_ways_to_list_processes_agree(self):
        from slimfl.flower.kit import processes

        here, there = processes._from_proc(), processes._from_ps()
        assert here[os.getpid()].parent == there[os.getpid()].parent == os.getppid()

    def test_a_reused_id_is_not_taken_for_our_process(self, tmp_path):
        import json

        file = tmp_path / "processes.json"
        file.write_text(json.dumps([{"name": "x", "pid": os.getpid(), "started": "long ago"}]))
        processes = Processes(file)
        assert processes.running() == {}
        processes.end(["x"])  # and this process lives on
