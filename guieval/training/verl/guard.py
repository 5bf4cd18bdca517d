"""Checks the environment of the plug-in: the extra is installed, and verl is a supported version.

verl's agent loop and V1 trainer are young, so what is relied on is checked by its parameters before a training begins: a
release that changes it is refused with one sentence instead of a traceback on one of many nodes.
"""

from __future__ import annotations

from typing import Any

from guieval.training.guard import check_methods, require_packages

SUPPORTED = "verl>=0.9.1,<0.10"
PACKAGES = ("torch", "transformers", "ray", "tensordict", "transfer_queue", "verl")
OVERRIDDEN = {
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
    "AgentLoopBase": {
        "run": ("self", "sampling_params", "kwargs"),
        "_assert_mm_supported": ("self", "has_multi_modal"),
        "_get_mm_processor_kwargs": ("self", "audio_data"),
    },
}
"""Methods of verl that are overridden or called and are not of its public face, with their parameters."""


def require_verl() -> None:
    """:class:`UsageError` unless the extra is installed, and verl is as it was when this was written."""
    require_packages("training with verl", PACKAGES, "verl")
    from verl.experimental.agent_loop.agent_loop import AgentLoopBase
    from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer
    from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

    for kind in (PPOTrainerSync, ReplayBuffer, AgentLoopBase):
        check_class(kind)


def check_class(kind: Any) -> None:
    """:class:`UsageError` naming the supported versions unless a class of verl has the methods that are relied on."""
    check_methods(kind, OVERRIDDEN[kind.__name__], "verl", SUPPORTED)
