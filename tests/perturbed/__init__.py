"""Tests of perturbed steps."""
