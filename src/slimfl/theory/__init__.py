"""Section V of the paper: the bound, the propositions, the advice, and their convex test."""
