"""Reporting: what a person reads of a run: words, pages, overviews."""
