"""Checks of a data folder: counts against the published ones, damage, and questionable labels."""
