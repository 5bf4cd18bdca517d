"""The commands of this wing, a module each."""
