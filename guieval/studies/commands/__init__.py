"""Commands that study models and finished runs."""
