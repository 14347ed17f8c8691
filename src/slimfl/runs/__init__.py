"""Runs: the loop over rounds, folders, records, checkpoints, callbacks, trackers, many runs."""
