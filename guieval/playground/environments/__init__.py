"""Environments of the playground: the simulated phone and the drawn icons."""
