"""Whole operations on files and servers, as plain functions: what a step runs."""
