"""Graphs of recorded screens to act in, without a device: mode ``graph``."""

OFFERS = {
    "environments": {"graphs": "guieval.graphs.environments"},
    "commands": {"study graphs": "guieval.graphs.commands.graphs"},
    "recorders": {"graph": "guieval.graphs.recording:record_graphs"},
    "task metrics": {"graphs": "guieval.graphs.metrics:METRICS"},
    "modes": {"graph": "guieval.graphs.of_benchmarks:graph_environment"},
}
"""What is found by name (:mod:`guieval.wings`)."""
