"""Run folders on disk: records, checkpoints and locks."""
