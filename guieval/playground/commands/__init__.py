"""Commands of the playground."""
