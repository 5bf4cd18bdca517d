"""What the plug-in needs of its surroundings: the extra is installed, and verl is a version whose inside is known.

verl's agent loop and V1 trainer are young, so what is relied on is checked by its parameters before a training begins: a
release that changes it is refused in one sentence, not met in a traceback on the last of many nodes.
"""

from __future__ import annotations

import importlib.util
from importlib.metadata import version
from inspect import signature
from typing import Any

from guieval.errors import UsageError

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
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(f"training with verl needs the package {missing[0]!r}: pip install 'guieval[verl]'")
    from verl.experimental.agent_loop.agent_loop import AgentLoopBase
    from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer
    from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

    for kind in (PPOTrainerSync, ReplayBuffer, AgentLoopBase):
        check_class(kind)


def check_class(kind: Any) -> None:
    """:class:`UsageError` naming the supported versions unless a class of verl has the methods that are relied on."""
    for name, expected in OVERRIDDEN[kind.__name__].items():
        method = getattr(kind, name, None)
        found = None if method is None else tuple(signature(method).parameters)
        if found != expected:
            what = "is gone" if found is None else f"takes ({', '.join(found)})"
            raise UsageError(
                f"{kind.__name__}.{name} {what} in the installed verl {version('verl')}; guieval relies on it as it is in "
                f"{SUPPORTED}: pip install '{SUPPORTED}'"
            )
