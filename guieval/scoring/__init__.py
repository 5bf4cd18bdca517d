"""Scores a journal under any protocol, without querying a model."""
