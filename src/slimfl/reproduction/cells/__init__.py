"""The runs of the reproduction: which there are, how far they are, the archive of them."""
