"""Choosing: select task rows, compare runs, adapt repeats."""
