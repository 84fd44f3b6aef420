"""Insights: from the table of rollouts to what the rewards say."""
