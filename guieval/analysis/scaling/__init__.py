"""Scaling laws: how a metric grows with the size of the training data."""
