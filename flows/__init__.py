"""The workflow and its command line; nothing below this package imports it."""
