"""Every public name of a package can be imported from it."""

import importlib
import pkgutil

import pytest

import slimfl

PACKAGES = ["slimfl", *(
    module.name for module in pkgutil.walk_packages(slimfl.__path__, "slimfl.") if module.ispkg
)]  # fmt: skip


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_in_all_is_there(name):
    package = importlib.import_module(name)
    offered = getattr(package, "__all__", [])
    assert len(offered) == len({*offered})
    assert [one for one in offered if not hasattr(package, one)] == []
