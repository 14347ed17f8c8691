"""Parts of a federation written outside slimfl, as a user would write them; see the how-tos."""
