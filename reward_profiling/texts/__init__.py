"""Texts from outside: removes secrets, and unwraps errors to their first message."""
