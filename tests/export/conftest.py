"""Small runs to export, each made once."""

from importlib.util import find_spec

import pytest

from tests import asking
from tests.outcomes import absent

SMALL = {
    "data__dataset": "synthetic",
    "data__train_samples": 400,
    "rounds": 3,
    "threads": 1,
    "training__steps": 12,
    "federation__devices": 2,
}


@pytest.fixture(scope="session")
def onnxruntime(request):
    if not all(map(find_spec, ("onnx", "onnxruntime", "onnxscript"))):
        message = "the extra `export` is needed: pip install -e '.[export]'"
        absent(request.config, message)
    import onnxruntime

    return onnxruntime


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A finished run: what `slimfl.run` returned, with its folder."""
    return asking.run(out=tmp_path_factory.mktemp("runs") / "run", seed=5, **SMALL)


@pytest.fixture(scope="session")
def exported(finished, onnxruntime, tmp_path_factory):
    """Its export in every format: the manifest and the folder."""
    from slimfl.export.exporting import export

    folder = tmp_path_factory.mktemp("exports") / "all"
    manifest = export(
        finished.folder, folder, formats=("onnx", "safetensors"), int8=True, measure=True
    )
    return manifest, folder
