"""Questions answered by many runs: planned first, then run, then judged."""
