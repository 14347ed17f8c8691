"""Tables for the terminal and for HTML pages, and the format of numbers."""
