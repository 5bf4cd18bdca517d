"""A simulated phone, drawn icons, a server with scripted policies, and a tiny policy that learns on them."""

OFFERS = {
    "environments": {"playground": "guieval.playground.environments"},
    "commands": {"dev mock-server": "guieval.playground.commands.mock_server"},
}
"""What is found by name (:mod:`guieval.wings`)."""
