"""Scores a journal or a file of predictions under any protocol, without querying a model."""
