"""Environments of others behind a server or a class of their own, and the server that offers ours."""
