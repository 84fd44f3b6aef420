"""The embedded environment: Gym's HTTP surface, small verifiers and a policy."""
