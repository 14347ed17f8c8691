"""SlimFL on ridge regression, where every quantity in theorem 1 is known."""
