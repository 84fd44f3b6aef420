"""Planning: task rows become planned rollouts."""
