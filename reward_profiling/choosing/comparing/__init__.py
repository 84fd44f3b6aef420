"""Comparing: what the difference of two runs is, and what it says."""
