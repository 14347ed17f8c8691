"""The sections of an experiment: every key with its type, its default and its meaning."""
