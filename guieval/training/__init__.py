"""Entry points of training: supervised, GRPO on reference history, UI-S1's semi-online RL and online RL, with TRL or verl.

The algorithms (rewards, rollouts, patches, returns, advantages) need no torch and are in :mod:`guieval.rewards`; this package
connects them to TRL's trainers. :mod:`.config` reads ``configs/training/*.yaml`` with the base install; training needs the
extra ``train``. Rows are made by the same adapters, and responses read by the same function, as in an evaluation.
"""

_KINDS = ("sft", "grpo", "semi-online", "online")
OFFERS = {
    "commands": {
        **{f"train {kind}": f"guieval.training.commands.train:{kind.replace('-', '_')}" for kind in _KINDS},
        "train plan": "guieval.training.commands.plan",
        "train evaluate": "guieval.training.commands.evaluate_training",
        "train export": "guieval.training.commands.export_training",
        "train probe-reward": "guieval.training.commands.probe_reward",
    },
    "campaigns": {
        "train": "guieval.training.trainings:Trainings",
        "planned": "guieval.training.trainings:planned_trainings",
        "trained": "guieval.training.trainings:trained",
        "check": "guieval.training.study:check_trainings",
        "plan": "guieval.training.commands.campaign:show_plan",
        "results": "guieval.training.study_tables:study_table",
    },
}
"""What is found by name (:mod:`guieval.wings`)."""
