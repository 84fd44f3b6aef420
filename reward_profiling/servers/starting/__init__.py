"""Servers that are started here: as child processes that never outlive the run."""
