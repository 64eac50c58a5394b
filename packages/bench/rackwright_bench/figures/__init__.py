"""Figures of cells, and comparisons of two of them: plain values."""
