"""Figures, tables and the pages, all from run folders."""
