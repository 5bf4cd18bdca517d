"""Perturbed steps: a recorded benchmark with something drawn into its screens, and what that makes of a model's clicks."""

OFFERS = {
    "perturbed": {
        "benchmark": "guieval.perturbed.benchmark:Perturbed",
        "variants": "guieval.perturbed.kinds:variants",
        "effects": "guieval.perturbed.lures:found_effects",
        "tables": "guieval.perturbed.tables:effect_tables",
    },
    "commands": {"study perturb": "guieval.perturbed.commands.perturb"},
}
"""What is found by name (:mod:`guieval.wings`)."""
