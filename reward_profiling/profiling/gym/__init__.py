"""Gym's three profile files: their content, equal to the last bit."""
