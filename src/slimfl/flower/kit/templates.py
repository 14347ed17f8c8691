"""The templates of a kit's scripts and systemd units."""

from shlex import quote
from string import Template

from slimfl.offline import SETTINGS

#: Settings that keep all traffic on the machine, except to the server.
EXPORTS = "\n".join(f"export {name}={quote(value)}" for name, value in SETTINGS.items())

SERVER_SCRIPT = Template(
    f"""#!/bin/sh
# The server of the federation: Flower's SuperLink with TLS and node authentication, on loopback,
# and nginx in front of it on the address that devices connect to.
# If the Python with slimfl is not the first on the PATH, set SLIMFL_BIN to its folder.
set -eu
umask 077
cd -- "$$(dirname -- "$$0")"
export PATH="$${{SLIMFL_BIN:+$$SLIMFL_BIN:}}$$PATH" FLWR_HOME="$$PWD/flwr"
{EXPORTS}
exec python3 -P -m slimfl.flower.guard superlink $proxy--host $host --port $port \\
    --ssl-ca-certfile ca.crt --ssl-certfile superlink.crt --ssl-keyfile superlink.key \\
    --enable-supernode-auth --database superlink.db --disable-runtime-dependency-installation
"""
)

DEVICE_SCRIPT = Template(
    f"""#!/bin/sh
# Device $device of the federation: Flower's SuperNode, known to the server by its key. It runs
# only the app that is signed with the key in trusted.yaml.
# device.env sets the folder of this device's data. If the Python with slimfl is not the first on
# the PATH, set SLIMFL_BIN to its folder.
set -eu
umask 077
cd -- "$$(dirname -- "$$0")"
. ./device.env
export DATA_DIR GAIN_FILE MODELS SLIMFL_DEVICE=$device SLIMFL_DEVICES=$devices
export PATH="$${{SLIMFL_BIN:+$$SLIMFL_BIN:}}$$PATH" FLWR_HOME="$$PWD/flwr"
{EXPORTS}
exec python3 -P -m slimfl.flower.guard supernode --superlink $address \\
    --root-certificates ca.crt --auth-supernode-private-key node.key \\
    --trusted-entities trusted.yaml --host 127.0.0.1 --port $device_port
"""
)

DEVICE_SETTINGS = Template(
    """# Folder with this device's data: the files of the named dataset or, with
# data.partition = "own" in the experiment, the device's own four idx files. If empty, the device
# looks where `slimfl data` looks. A shell reads this file: keep the quotes.
DATA_DIR=$data_dir
# With radio.gains = "measured": the file with the last power gain that the radio measured, one
# number with mean 1.
GAIN_FILE=''
# Further networks that this device may train for the server, as package.module:Name, separated by
# commas. Their code must be installed on this device.
MODELS=''
"""
)

UNIT = Template(
    """# Copy to /etc/systemd/system/, adjust User and the paths, then
#     systemctl daemon-reload && systemctl enable --now $name
[Unit]
Description=slimfl: $what
After=network-online.target
Wants=network-online.target

[Service]
User=slimfl
Environment=SLIMFL_BIN=/opt/slimfl/.venv/bin
ExecStart=/bin/sh /opt/slimfl/$folder/start.sh
Restart=on-failure
RestartSec=10
KillMode=control-group
TimeoutStopSec=30
NoNewPrivileges=true
PrivateTmp=true
ProtectSystem=full

[Install]
WantedBy=multi-user.target
"""
)

COMPOSE_HEAD = """# UNTESTED: an example for use with containers.
# The image must have nginx and slimfl with its extra `flower`; paths are those of this kit.
services:
"""

COMPOSE_SERVICE = Template(
    """  $name:
    image: slimfl-flower
    command: ["sh", "/kit/start.sh"]
    volumes: ["./$name:/kit"]
    network_mode: host
    restart: on-failure
"""
)

EXPERIMENT = Template(
    """# An experiment to start with: slimfl run experiment.toml --superlink .
engine = "flower"
method = "slimfl"
rounds = 30

[federation]
devices = $devices

[flower]
# share of a round's devices that must answer for the round to be merged
quorum = 0.5
round_timeout_s = 600.0
"""
)
