"""Questions of our own, answered by many runs: which method suits which devices and channel."""
