"""Adds a benchmark, a model family and a protocol to guieval."""
