"""The configuration of nginx, the only part of a server that the network can reach.

It terminates TLS on the given address and forwards only what devices need; nothing else of Flower
can be reached. Requests to the SuperLink are encrypted again, and its certificate is checked, as
another user of the machine may take the port while the SuperLink is down.
"""

import os
import shutil
from string import Template

NO_NGINX = (
    "the server's address is served by nginx, which is not installed; install it "
    "(on Debian: apt install nginx-light)"
)

#: The calls of a device with a registered key. Devices do not register themselves.
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

CONFIGURATION = Template(
    """# The server's address for the devices: nginx -p THIS FOLDER -c nginx.conf, as start.sh does.
daemon off;
worker_processes 1;
pid nginx/nginx.pid;
error_log stderr crit;  # no line for every request that fails
events { worker_connections 4096; }

http {
    access_log off;  # nothing of a request is kept: a device's headers are valid for minutes
    server_tokens off;
    client_body_temp_path nginx/body;
    proxy_temp_path nginx/proxy;
    fastcgi_temp_path nginx/fastcgi;
    uwsgi_temp_path nginx/uwsgi;
    scgi_temp_path nginx/scgi;

    # of one address: devices behind one router share these. Flower tries again after a 503
    limit_req_zone $$binary_remote_addr zone=requests:10m rate=200r/s;
    limit_req zone=requests burst=1000 nodelay;
    limit_conn_zone $$binary_remote_addr zone=connections:10m;
    limit_conn connections 200;

    # nothing is stored on the way, and a body that is too long ends the connection
    client_max_body_size $body_bytes;
    proxy_request_buffering off;
    proxy_buffering off;
    client_header_timeout 15s;
    client_body_timeout 30s;
    send_timeout 30s;
    reset_timedout_connection on;

    server {
        listen $listen ssl;
        ssl_certificate superlink.crt;
        ssl_certificate_key superlink.key;
        ssl_protocols TLSv1.2 TLSv1.3;

        location ~ ^/v1/fleet/($calls)$$ {
            if ($$request_method != POST) { return 405; }
            proxy_pass https://$superlink$$uri;
            proxy_http_version 1.1;
            proxy_ssl_verify on;
            proxy_ssl_trusted_certificate ca.crt;
            proxy_ssl_name localhost;
            proxy_set_header Host localhost;
            proxy_set_header Connection "";
            proxy_set_header Authorization "";
            proxy_read_timeout 120s;
        }
        location / { return 404; }
    }
}
"""
)


def configuration(listen: str, superlink: str, body_bytes: int) -> str:
    """`listen` is the devices' address, `superlink` the SuperLink's on this machine."""
    return CONFIGURATION.substitute(
        listen=listen, superlink=superlink, body_bytes=body_bytes, calls="|".join(CALLS)
    )


def find_nginx() -> str | None:
    """The path of nginx, which Debian installs in a folder for administrators."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin")
