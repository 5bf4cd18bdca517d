"""Commands that score, compare and show finished runs."""
