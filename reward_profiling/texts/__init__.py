"""Texts from outside: secrets taken out, errors unwrapped to what was said first."""
