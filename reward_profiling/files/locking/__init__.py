"""Locks of outputs: who holds one, and whether that process lives."""
