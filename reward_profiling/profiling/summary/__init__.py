"""What a run came to: its counts, its warnings, and how its agents are named."""
