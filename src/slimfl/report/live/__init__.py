"""The live page: a local server that follows run folders and shows them in a browser.

It only reads. Everything comes from the run folder, through the same records as for every reader,
and reaches the page as server-sent events. Starlette and uvicorn, which serve it, are an extra and
are only imported by `app` and `server`.
"""
