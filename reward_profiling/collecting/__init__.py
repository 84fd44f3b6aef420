"""Collecting: owed rollouts become records."""
