"""Screens of coloured icons: a world small enough for a policy of a few million weights."""
