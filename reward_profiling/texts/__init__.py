"""Texts from outside: without secrets, unwrapped to their first message, and tame."""
