"""Optional packages: whether they are installed, and how to install the extra that has them."""

import importlib.util
from importlib import metadata

from slimfl.errors import RequestError

#: Versions of Flower whose inner parts deployments use; pyproject.toml asks for the same.
DEPLOYABLE_FLOWER = ("1.41.", "1.42.")


def why_missing(extra: str, *packages: str) -> str | None:
    """Which packages of an extra are absent and how to install them; None if all are there.

    slimfl is on no package index, so the command is one for a checkout.
    """
    missing = [package for package in packages if not _installed(package)]
    if not missing:
        return None
    are = "is" if len(missing) == 1 else "are"
    return f"{' and '.join(missing)} {are} not installed{_install(extra)}"


def why_not_flower() -> str | None:
    """Why the flower engine is not available; None if it is."""
    return why_missing("flower", "flwr", "ray", "psutil")


def why_not_deploy() -> str | None:
    """Why deployments are not available; None if they are."""
    problem = why_missing("deploy", "flwr", "psutil")
    if problem is None and not metadata.version("flwr").startswith(DEPLOYABLE_FLOWER):
        found = metadata.version("flwr")
        problem = f"deployments were not tried with flwr {found}{_install('deploy')}"
    return problem


def require(extra: str, *packages: str) -> None:
    """Refuse a request that needs packages which are not installed."""
    problem = why_missing(extra, *packages)
    if problem is not None:
        raise RequestError(problem)


def _installed(package: str) -> bool:
    found = importlib.util.find_spec(package)
    # a folder of that name, such as wandb/ with earlier logs, has a place but no code
    return found is not None and found.loader is not None and found.origin is not None


def _install(extra: str) -> str:
    return f"; run `pip install '.[{extra}]'` in a checkout of slimfl"
