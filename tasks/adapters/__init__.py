"""The outside world: one module per thing outside, each mapping it to our words."""
