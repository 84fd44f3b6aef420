"""Gym's three profile files: what stands in them, to the last bit."""
