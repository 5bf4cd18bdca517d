"""Entry points of training: supervised, GRPO on reference history, UI-S1's semi-online RL and online RL, with TRL or verl.

The algorithms (rewards, rollouts, patches, returns, advantages) need no torch and are in :mod:`guieval.rewards`; this package
connects them to TRL's trainers. :mod:`.config` reads ``configs/training/*.yaml`` with the base install; training needs the
extra ``train``. Rows are made by the same adapters, and replies read by the same function, as in an evaluation.
"""

OFFERS: dict[str, dict[str, str]] = {}
"""What is found by name (:mod:`guieval.wings`)."""
