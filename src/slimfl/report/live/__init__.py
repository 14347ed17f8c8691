"""The live page: a local server that follows run folders and shows them in a browser.

It only reads. Everything comes from the run folder, through the same records as for every reader,
and reaches the page as server-sent events. Starlette and uvicorn, which serve it, are an extra and
are only imported by `app` and `server`.
"""

from slimfl.report.live.board import Board
from slimfl.report.live.scan import check_paths, run_folders

__all__ = ["Board", "check_paths", "run_folders"]
