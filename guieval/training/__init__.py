"""Entry points of training: supervised, GRPO on reference history, and UI-S1's semi-online RL, with TRL on one node, or verl.

The algorithms (rewards, rollouts, patches, returns, advantages) need no torch and are in :mod:`guieval.rewards`; this package
connects them to TRL's trainers. :mod:`.config` reads ``configs/training/*.yaml`` with the base install; training needs the
extra ``train``. Rows are made by the same adapters, and replies read by the same function, as in an evaluation.
"""

from guieval.training.config import GRPOTraining, SemiOnlineTraining, SFTTraining, TrainingConfig, read_config

__all__ = ["GRPOTraining", "SFTTraining", "SemiOnlineTraining", "TrainingConfig", "read_config"]
