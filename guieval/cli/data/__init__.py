"""Commands about benchmarks and their data."""
