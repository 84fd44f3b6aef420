"""Profiles the rewards of NeMo Gym environments: the library and the command."""
