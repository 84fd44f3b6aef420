"""Profiling: records become Gym's three files and the table of rollouts."""
