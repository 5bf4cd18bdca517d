"""Benchmarks: one module per data format; found by :mod:`guieval.registry`."""
