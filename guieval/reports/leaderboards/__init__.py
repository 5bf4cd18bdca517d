"""Leaderboards: several runs and published metrics in one table, in every format."""
