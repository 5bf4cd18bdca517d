"""Leaderboards: several runs and published figures in one table, in every format."""
