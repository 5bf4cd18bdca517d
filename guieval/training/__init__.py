"""Entry points of training: supervised, GRPO on reference history, and UI-S1's semi-online RL, with TRL on one node, or verl.

The algorithms (rewards, rollouts, patches, returns, advantages) are torch-free and live in :mod:`guieval.rewards`; here they
meet TRL's trainers. :mod:`.config` reads ``configs/training/*.yaml`` and needs nothing that the base install lacks; to train
needs the extra ``train``. Rows are made by the same adapters, and replies read by the same function, as in an evaluation.
"""

from guieval.training.config import GRPOTraining, SemiOnlineTraining, SFTTraining, TrainingConfig, read_config

__all__ = ["GRPOTraining", "SFTTraining", "SemiOnlineTraining", "TrainingConfig", "read_config"]
