"""The bundle that Flower sends to devices: two lines that name slimfl's apps.

slimfl itself is installed on every machine; the bundle contains none of its code.
"""

from importlib import metadata

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


def files() -> dict[str, str]:
    """The files of the Flower app, by name."""
    version = metadata.version("slimfl")
    return {"pyproject.toml": PROJECT.format(version=version), "slimfl_app.py": MODULE}


def bundle() -> bytes:
    """These files as a Flower App Bundle."""
    from flwr.cli.build import build_fab_from_files

    contents = {name: text.encode() for name, text in files().items()}
    built: bytes = build_fab_from_files(contents)[0]
    return built
