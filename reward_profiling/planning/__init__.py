"""Planning: turns task rows into planned rollouts."""
