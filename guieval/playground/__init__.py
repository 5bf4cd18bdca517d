"""A simulated phone, drawn icons, a server with scripted policies, and a tiny policy that learns on them."""

OFFERS = {"environments": {"playground": "guieval.playground.environments"}}
"""What is found by name (:mod:`guieval.wings`)."""
