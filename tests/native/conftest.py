"""The compiled module under test: the installed one, or a build that SLIMFL_NATIVE_BUILD names.

The sanitizer job tests its own build through that variable.
"""

import importlib
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
if "SLIMFL_NATIVE_BUILD" in os.environ:
    sys.path.insert(0, os.environ["SLIMFL_NATIVE_BUILD"])
    importlib.import_module("_native")
else:
    sys.modules["_native"] = importlib.import_module("slimfl._native")
