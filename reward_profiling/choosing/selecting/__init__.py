"""Selecting: source rows, what decides about them, and where they are written."""
