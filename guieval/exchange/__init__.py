"""Runs in the formats of other tools: result files, model cards and trajectories.

:mod:`.exported` collects what every format needs, the other modules write one format each, and :mod:`.formats` lists them.
"""

OFFERS = {
    "commands": {
        "data import": "guieval.exchange.commands.import_predictions",
        "data export-results": "guieval.exchange.commands.export_results",
        "data push": "guieval.exchange.commands.push",
    }
}
"""What is found by name (:mod:`guieval.wings`)."""
