"""Runs in the formats of other tools: result files, model cards and trajectories.

:mod:`.exported` collects what every format needs, the other modules write one format each, and :mod:`.formats` lists them.
"""

OFFERS: dict[str, dict[str, str]] = {}
"""What is found by name (:mod:`guieval.wings`)."""
