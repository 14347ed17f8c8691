"""Run folders on disk: records, checkpoints, locks, and whether a checkpoint belongs to a run."""
