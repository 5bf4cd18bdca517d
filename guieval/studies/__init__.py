"""Studies of finished runs: decisions, reasoning-execution consistency, history mixing, data selection and scaling laws."""

_COMMANDS = (
    "rollout",
    "mix",
    "decisions",
    "consistency",
    "correlate",
    "power",
    "judge",
    "judges",
    "select",
    "fit-scaling",
    "thoughts",
    "retries",
)
OFFERS = {
    "commands": {f"study {name}": f"guieval.studies.commands.{name.replace('-', '_')}" for name in _COMMANDS},
    "plots": {"studies": "guieval.studies.plots.kinds:KINDS"},
    "pages": {
        "rollout": "guieval.studies.decisions.page:decisions_section",
        "step": "guieval.studies.decisions.page:decision_values",
    },
}
"""What is found by name (:mod:`guieval.wings`)."""
