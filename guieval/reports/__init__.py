"""How metrics are shown. Nothing here computes a score: that is :mod:`guieval.metrics`."""
