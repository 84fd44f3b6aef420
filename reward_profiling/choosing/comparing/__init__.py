"""Comparing: the difference of two runs, and its verdict."""
