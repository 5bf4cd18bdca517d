"""Model adapters: one module per model family; found by :mod:`guieval.registry`."""
