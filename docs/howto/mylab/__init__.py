"""Parts of a federation written outside slimfl, as a user would: see the how-to guides."""
