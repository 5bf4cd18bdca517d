"""Shipped configuration: checkpoints (``models/``)."""
