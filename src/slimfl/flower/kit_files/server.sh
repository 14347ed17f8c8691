#!/bin/sh
# The server of the federation: Flower's SuperLink with TLS and node authentication, on loopback,
# and nginx in front of it on the address that devices connect to.
# If the Python with slimfl is not the first on the PATH, set SLIMFL_BIN to its folder.
set -eu
umask 077
cd -- "$(dirname -- "$0")"
export PATH="${SLIMFL_BIN:+$SLIMFL_BIN:}$PATH" FLWR_HOME="$PWD/flwr"
{{ exports }}
exec python3 -P -m slimfl.flower.guard superlink {{ "--proxy nginx.conf " if proxied }}--host {{ host }} --port {{ port }} \
    --ssl-ca-certfile ca.crt --ssl-certfile superlink.crt --ssl-keyfile superlink.key \
    --enable-supernode-auth --database superlink.db --disable-runtime-dependency-installation
