"""The commands of perturbed steps."""
