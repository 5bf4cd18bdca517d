"""The page of an online run."""
