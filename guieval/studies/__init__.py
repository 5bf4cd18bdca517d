"""Studies of finished runs: decisions, reasoning-execution consistency, history mixing, data selection and scaling laws."""

OFFERS: dict[str, dict[str, str]] = {}
"""What is found by name (:mod:`guieval.wings`)."""
