"""Every public name of a package can be imported from it."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import slimfl

PACKAGES = ["slimfl", *(
    module.name for module in pkgutil.walk_packages(slimfl.__path__, "slimfl.") if module.ispkg
)]  # fmt: skip


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_in_all_is_there(name):
    if name in ("slimfl.flower", "slimfl.export"):
        pytest.importorskip("flwr" if name == "slimfl.flower" else "onnx")
    package = importlib.import_module(name)
    offered = getattr(package, "__all__", [])
    assert len(offered) == len({*offered})
    assert [one for one in offered if not hasattr(package, one)] == []
    assert [one for one in offered if one not in dir(package)] == []  # so that it can be completed


@pytest.mark.slow
@pytest.mark.parametrize("room", ["nn", "training", "engines", "round"])
def test_a_module_never_replaces_a_public_name(room):
    """Names that are imported on first use are the same whatever modules were imported before."""
    code = f"""if True:
        import importlib, pkgutil, types
        import slimfl.{room} as package
        for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            importlib.import_module(module.name)
        print([n for n in package.__all__ if isinstance(getattr(package, n), types.ModuleType)])
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_there_are_few_public_names():
    assert len(slimfl.__all__) <= 14


def test_a_name_that_is_not_public_is_named_in_the_error():
    with pytest.raises(AttributeError, match=r"module 'slimfl\.nn' has no attribute 'Resnet'"):
        slimfl.nn.Resnet  # noqa: B018
