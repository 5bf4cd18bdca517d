"""Commands that train, and that prepare training."""
