"""Rewards for training GUI agents: each is a pure function of a response, without torch or a training framework.

A step reward weighs an evaluator's outcome of one answer (:func:`get_reward`), and a scorer parses raw responses for it
(:func:`open_scorer`); :mod:`guieval.rewards.adapters` gives a scorer the signature that a framework expects. Over whole
trajectories, :class:`SemiOnlineRollout` is UI-S1's Algorithm 1, and :func:`advantages` its equations 9 to 12. UI-R1's released
rewards on raw texts (:func:`action_reward` and others) are separate because they use no evaluator.
"""

from guieval.rewards.advantages import AdvantageSettings, Trajectory, advantages, keep_group, spread, step_returns
from guieval.rewards.dynamic_sampling import Collected, collect
from guieval.rewards.formats import FormatRule, HasThought, Parses, Tags, ThoughtAndAction
from guieval.rewards.overlong import Overlong
from guieval.rewards.patches import OffPolicyThoughts, OnPolicyThoughts, ThoughtSource, finish_patch
from guieval.rewards.response import ResponseScorer, ScoredResponse, open_scorer
from guieval.rewards.rollout import RolloutStep, SemiOnlineRollout
from guieval.rewards.shapes import REWARDS, get_reward
from guieval.rewards.step import ABCReward, RewardParts
from guieval.rewards.ui_r1 import action_reward, coordinate_reward, format_reward

__all__ = [
    "REWARDS",
    "ABCReward",
    "AdvantageSettings",
    "Collected",
    "FormatRule",
    "HasThought",
    "OffPolicyThoughts",
    "OnPolicyThoughts",
    "Overlong",
    "Parses",
    "ResponseScorer",
    "RewardParts",
    "RolloutStep",
    "ScoredResponse",
    "SemiOnlineRollout",
    "Tags",
    "ThoughtAndAction",
    "ThoughtSource",
    "Trajectory",
    "action_reward",
    "advantages",
    "collect",
    "coordinate_reward",
    "finish_patch",
    "format_reward",
    "get_reward",
    "keep_group",
    "open_scorer",
    "spread",
    "step_returns",
]
