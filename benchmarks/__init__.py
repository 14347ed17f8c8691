"""Compares engines and bare PyTorch in interleaved repetitions of one run.

Nothing is imported here, so that a worker imports only what its runner needs.
"""
