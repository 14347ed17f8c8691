"""SlimFL on ridge regression, where all that theorem 1 speaks of is known."""
