"""A rival written outside slimfl: see the how-to guide on rivals."""
