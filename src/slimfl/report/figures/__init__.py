"""Figures for papers and the README. Every function returns a figure; `drawing.save` writes it.

Matplotlib is imported when the first figure is drawn.
"""
