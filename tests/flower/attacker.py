"""A stranger on this machine: calls given addresses without secrets, with the standard library.

It is run as a program, if possible as another user (its argument), and knows only its input: a list
of calls as JSON on standard input. It prints the result of each: a status, or an error.
"""

import base64
import encodings.idna  # noqa: F401  (looked for by the first connection, when it may be out of reach)
import http.client
import json
import os
import socket
import ssl
import sys
from pathlib import Path

ANYBODY = ssl.create_default_context()
ANYBODY.check_hostname, ANYBODY.verify_mode = False, ssl.CERT_NONE


def call(host, port, path, body, headers):
    """The status of a POST, over TLS or without."""
    told = []
    for connection in (
        http.client.HTTPSConnection(host, port, timeout=30, context=ANYBODY),
        http.client.HTTPConnection(host, port, timeout=30),
    ):
        try:
            sent = {"content-type": "application/protobuf", **headers}
            connection.request("POST", path, base64.b64decode(body), sent)
            told.append(connection.getresponse().status)
        except (OSError, http.client.HTTPException) as error:
            told.append(type(error).__name__)
        finally:
            connection.close()
    return told


def flood(host, port, path, length, chunked):
    """How much of a long body was taken, and the answer's first line."""
    plain = socket.create_connection((host, port), timeout=30)
    sent, answer = 0, b""
    with ANYBODY.wrap_socket(plain, server_hostname="localhost") as connection:
        size = "transfer-encoding: chunked" if chunked else f"content-length: {length}"
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\n{size}\r\n"
        connection.sendall(f"{head}content-type: application/protobuf\r\n\r\n".encode())
        piece = b"\0" * 2**20
        framed = b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece
        try:
            while sent < length:
                connection.sendall(framed)
                sent += len(piece)
        except OSError:
            pass
        try:
            connection.settimeout(10)
            answer = connection.recv(64)
        except OSError:
            pass
    return [sent, answer.split(b"\r\n")[0].decode(errors="replace")]


def read(path):
    """What reading a file or a folder comes to."""
    try:
        if Path(path).is_dir():
            list(Path(path).iterdir())
        else:
            Path(path).open("rb").close()
    except OSError as error:
        return type(error).__name__
    return "read"


if __name__ == "__main__":
    for user in map(int, sys.argv[1:]):
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    doing = {"call": call, "flood": flood, "read": read}
    print(json.dumps([doing[what](*arguments) for what, *arguments in json.load(sys.stdin)]))
