"""Scores what is already there, a journal or a file of predictions, under any protocol; no model is asked."""
