"""The HTML page of a reproduction."""
