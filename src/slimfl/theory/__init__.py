"""Section V of the paper: the bound, the propositions, the advice, and a convex test of them."""
