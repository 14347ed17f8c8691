"""Engines and bare PyTorch side by side, in interleaved repetitions of one run."""

from slimfl.bench.suite import benchmark
from slimfl.bench.table import tables
from slimfl.bench.work import Work

__all__ = ["Work", "benchmark", "tables"]
