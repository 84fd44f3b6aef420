"""Checks: what in a run's numbers says that they, or the verifier, are not sound."""
