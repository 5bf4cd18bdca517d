"""A desktop of real applications, and environments of others: web pages in a browser, and servers that guieval talks to."""

OFFERS = {
    "environments": {
        "desktop": "guieval.connectors.desktop",
        "pages": "guieval.connectors.pages",
        "servers": "guieval.connectors.servers",
    },
    "commands": {"dev serve-environment": "guieval.connectors.commands.serve_environment"},
}
"""What is found by name (:mod:`guieval.wings`)."""
