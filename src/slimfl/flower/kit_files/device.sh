#!/bin/sh
# Device {{ device }} of the federation: Flower's SuperNode, known to the server by its key. It runs
# only the app that is signed with the key in trusted.yaml.
# device.env sets the folder of this device's data. If the Python with slimfl is not the first on
# the PATH, set SLIMFL_BIN to its folder.
set -eu
umask 077
cd -- "$(dirname -- "$0")"
. ./device.env
export DATA_DIR GAIN_FILE MODELS SLIMFL_DEVICE={{ device }} SLIMFL_DEVICES={{ devices }}
export PATH="${SLIMFL_BIN:+$SLIMFL_BIN:}$PATH" FLWR_HOME="$PWD/flwr"
{{ exports }}
exec python3 -P -m slimfl.flower.guard supernode --superlink {{ address }} \
    --root-certificates ca.crt --auth-supernode-private-key node.key \
    --trusted-entities trusted.yaml --host 127.0.0.1 --port {{ port }}
