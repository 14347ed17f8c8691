"""The deployment kit: everything that a federation of separate machines needs, in one folder.

The folder has::

    kit.toml          where the server is, how many devices there are
    ca/               the authority that signed the server's certificate, and the key that signed
                      the app that devices carry out; keep both keys off-line
    server/           for the machine of the server: certificate, key, control token, signed app,
                      nginx's configuration, start script, systemd unit
    device-0/ ...     for the machine of each device: node key, start script, systemd unit
    experiment.toml   a description to begin with
    compose.yaml      the same for containers (not tried)

Copy each folder to its machine; nothing else is needed there but slimfl.
"""

from slimfl.flower.kit.federation import Federation
from slimfl.flower.kit.layout import Kit, lay_out

__all__ = ["Federation", "Kit", "lay_out"]
