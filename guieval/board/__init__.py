"""A leaderboard as a folder of pages: every number with its rank, its source and the commands that repeat it."""

OFFERS = {"board": {"site": "guieval.board.site:write_site"}}
"""What is found by name (:mod:`guieval.wings`)."""
