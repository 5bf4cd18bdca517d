"""Runs a model over steps or tasks: the session, its scheduler, and what asks the model."""
