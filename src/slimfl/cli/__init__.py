"""The command line. Exit status: 0 done, 1 failed, 2 the request was wrong."""

from slimfl.cli.app import main

__all__ = ["main"]
