"""Engines and bare PyTorch side by side, in interleaved repetitions of one run.

Nothing is imported here, so that a worker starts with no more than what its runner needs.
"""
