"""Environments of others: web pages that guieval opens in a browser, and servers that it talks to."""

OFFERS = {
    "environments": {"pages": "guieval.connectors.pages", "servers": "guieval.connectors.servers"},
    "commands": {"dev serve-environment": "guieval.connectors.commands.serve_environment"},
}
"""What is found by name (:mod:`guieval.wings`)."""
