"""Rewards for training GUI agents: each is a pure function of a completion, without torch or a training framework."""

from guieval.rewards.ui_r1 import action_reward, coordinate_reward, format_reward

__all__ = ["action_reward", "coordinate_reward", "format_reward"]
