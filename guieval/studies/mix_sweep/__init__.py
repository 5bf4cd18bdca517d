"""Sweeps over history mixing: many mixtures of reference and on-policy history, and exact match against each."""
