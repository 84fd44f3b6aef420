"""The environment servers' own metrics over what was collected."""
