"""Profiling: turns records into Gym's three files and the table of rollouts."""
