"""Checks the environment of a training with verl: the extra is installed, and verl is a supported version.

verl has no public hook for semi-online rollouts or the choice of groups, so private methods are overridden or called. Their
parameters are checked here, and their behaviour on tiny inputs in :mod:`.behaviour`.
"""

from __future__ import annotations

from typing import Any

from guieval.training.guard import check_behaviours, check_methods, require_packages

SUPPORTED = "verl>=0.9.1,<0.10"
PACKAGES = ("torch", "transformers", "ray", "tensordict", "transfer_queue", "verl")
METHODS: dict[str, dict[str, tuple[str, ...]]] = {
    "PPOTrainerSync": {
        "_build_replay_buffer": ("self",),
        "_compute_advantage": ("self", "batch", "metrics"),
        "_get_required_batch_multiple": ("self", "dp_size"),
        "_update_actor": ("self", "batch", "metrics"),
        "_add_prompts_to_generate": ("self", "num_prompts"),
    },
    "ReplayBuffer": {
        "sample": ("self", "global_steps", "partition_id", "batch_size"),
        "_dapo_filtered_keys": ("self", "partition_id"),
    },
    "ReplayBufferAsync": {
        "sample": ("self", "global_steps", "partition_id", "batch_size"),
        "_evict_terminal_groups": ("self", "global_steps", "partition_id", "eviction_reasons"),
    },
    "AgentLoopBase": {
        "run": ("self", "sampling_params", "kwargs"),
        "_assert_mm_supported": ("self", "has_multi_modal"),
        "_get_mm_processor_kwargs": ("self", "audio_data"),
    },
}
"""Private methods of verl's classes that are overridden or called, and their parameters in the supported versions."""


def require_verl() -> None:
    """:class:`UsageError` unless the extra is installed, and verl's classes have the methods that are relied on."""
    require_packages("training with verl", PACKAGES, "verl")
    from verl.experimental.agent_loop.agent_loop import AgentLoopBase
    from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync
    from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

    for kind in (PPOTrainerSync, ReplayBuffer, ReplayBufferAsync, AgentLoopBase):
        check_verl_class(kind)
    from guieval.training.verl.behaviour import BEHAVIOURS

    check_behaviours(BEHAVIOURS, "verl", SUPPORTED)


def check_verl_class(kind: Any) -> None:
    """:class:`UsageError` naming the supported versions unless a class of verl has the methods that are relied on."""
    check_methods(kind, METHODS[kind.__name__], "verl", SUPPORTED)
