"""Trackers of runs: Weights & Biases and MLflow."""
