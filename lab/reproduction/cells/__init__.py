"""The runs of the reproduction, their progress, and their archive."""
