"""guieval: evaluates GUI agents offline and semi-online, and reuses the same evaluators as rewards."""
