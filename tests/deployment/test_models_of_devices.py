"""Devices of a real federation on loopback train only the models they were configured for."""

import textwrap

import pytest
from test_deployment import PATIENCE_S, free_ports
from test_simulated import EXPERIMENT, command

from slimfl.deployment.kit import Federation, lay_out
from slimfl.federation import RunFolder

NETWORKS = """
    from torch import nn
    from slimfl.nn import slimmable

    def small(in_channels, classes):
        return slimmable(nn.Sequential(
            nn.Conv2d(in_channels, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(4, classes),
        ))
"""


@pytest.mark.slow
def test_a_device_that_was_not_configured_for_a_model_refuses_it(tmp_path, monkeypatch):
    (tmp_path / "python").mkdir()
    (tmp_path / "python/networks_of_a_kit.py").write_text(textwrap.dedent(NETWORKS))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "python"))  # of every process here
    port, control_port, device_port = free_ports(3)
    federation = Federation(
        lay_out(
            tmp_path / "kit",
            2,
            "127.0.0.1",
            port,
            control_port=control_port,
            device_port=device_port,
        )
    )
    settings = federation.kit.device(0) / "device.env"
    text = settings.read_text()
    settings.write_text(text.replace("MODELS=''", "MODELS='networks_of_a_kit:small'"))
    assert settings.read_text() != text
    name = 'name = "networks_of_a_kit:small"'
    (tmp_path / "mine.toml").write_text(f"{EXPERIMENT}\n[model]\n{name}\n")
    try:
        federation.up()
        done = command(
            "run", tmp_path / "mine.toml", "--superlink", federation.kit.path, "--rounds", 1,
            "--devices", 2, "--trust", "networks_of_a_kit", "--out", tmp_path / "group",
            timeout=PATIENCE_S,
        )  # fmt: skip
    finally:
        federation.down()
    assert done.returncode == 0, done.stderr
    folder = RunFolder.open(tmp_path / "group/slimfl-seed0")
    (line,) = folder.metrics()
    assert (line["devices"], line["dropped_out"]) == ([0], [1])
    log = (folder.path / "run.log").read_text()
    assert "this device does not accept model 'networks_of_a_kit:small'" in log
    assert "MODELS in device.env" in log
