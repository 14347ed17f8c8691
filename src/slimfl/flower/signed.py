"""The only app that devices of a kit run, signed when the kit is made.

Devices have the public key and refuse every other app, even from the server. The private key is not
needed again until the app changes. The app is two lines that name slimfl's apps: slimfl itself is
installed on every machine, and the bundle contains none of its code.
"""

import base64
import hashlib
import json
import secrets
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)
from flwr.cli.build import build_fab_from_files
from flwr.supercore.primitives.asymmetric_ed25519 import create_message_to_sign

from slimfl.errors import RequestError
from slimfl.files import read_regular_text

#: The app's id in the SuperLink: publisher and name, as in the bundle.
APP_ID = "@slimfl/slimfl-app"

FILE = "slimfl-app.json"

MODULE = '''"""SlimFL's apps, for Flower to find."""

from slimfl.flower import client_app, server_app

__all__ = ["client_app", "server_app"]
'''

PROJECT = """[project]
name = "slimfl-app"
version = "{version}"
description = "SlimFL on Flower"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "slimfl"

[tool.flwr.app.components]
serverapp = "slimfl_app:server_app"
clientapp = "slimfl_app:client_app"

[tool.flwr.app.config]
run-folder = ""
trust = ""
"""


@dataclass(frozen=True)
class SignedApp:
    """A Flower App Bundle with its signature."""

    content: bytes
    verifications: dict[str, str]

    @property
    def digest(self) -> str:
        """The digest that identifies it in the SuperLink."""
        return hashlib.sha256(self.content).hexdigest()

    @classmethod
    def read(cls, server: Path) -> "SignedApp":
        """The app in a kit's folder for the server."""
        path = server / FILE
        try:
            tree = json.loads(read_regular_text(path))
            content = base64.b64decode(tree["content"], validate=True)
            verifications = {str(key): str(value) for key, value in tree["verifications"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise RequestError(
                f"the signed app {path} is damaged ({error}); make a new kit with "
                "`slimfl deploy init`"
            ) from None
        return cls(content, verifications)

    def write(self, server: Path) -> None:
        """Store it for the SuperLink."""
        content = base64.b64encode(self.content).decode()
        tree = {"content": content, "verifications": self.verifications}
        (server / FILE).write_text(json.dumps(tree))


@dataclass(frozen=True)
class Signer:
    """A key pair for apps, in OpenSSH's formats."""

    name: str
    private: bytes
    public: str

    @classmethod
    def generate(cls) -> "Signer":
        """A new key pair."""
        key = Ed25519PrivateKey.generate()
        public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        return cls(f"fpk_{secrets.token_hex(8)}", private, public.decode())

    def sign(self, content: bytes) -> SignedApp:
        """Sign an app as SuperNodes verify it: the signature covers its digest and the time."""
        key = load_ssh_private_key(self.private, None)
        assert isinstance(key, Ed25519PrivateKey)
        signed_at = int(time.time())
        message = create_message_to_sign(hashlib.sha256(content).digest(), signed_at)
        signature = base64.urlsafe_b64encode(key.sign(message)).decode().rstrip("=")
        record = json.dumps({"signature": signature, "signed_at": signed_at})
        # Flower requires the second entry before it checks the first
        return SignedApp(content, {self.name: record, "valid_license": "Valid"})


def files() -> dict[str, str]:
    """The files of the Flower app, by name."""
    version = metadata.version("slimfl")
    return {"pyproject.toml": PROJECT.format(version=version), "slimfl_app.py": MODULE}


def bundle() -> bytes:
    """These files as a Flower App Bundle."""
    contents = {name: text.encode() for name, text in files().items()}
    built: bytes = build_fab_from_files(contents)[0]
    return built
