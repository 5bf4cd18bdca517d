"""Benchmarks whose data is a graph."""
