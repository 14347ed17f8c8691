"""Tables for a terminal and for a page, and how numbers are written."""
