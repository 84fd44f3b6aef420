"""The window over owed rollouts: what starts, is asked for, recorded and stopped."""
