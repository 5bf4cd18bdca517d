"""Generation with weights that FSDP has sharded over the processes."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any


def sharding_callback(trainer: Any) -> Any:
    """A callback that prepares a model for generation, in rollouts and evaluations, if FSDP has sharded it."""
    from transformers import TrainerCallback

    class ShardingCallback(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            if trainer.accelerator.distributed_type == "FSDP":
                let_generate(trainer.accelerator.unwrap_model(trainer.model_wrapped))

    return ShardingCallback()


def let_generate(model: Any) -> None:
    """Prepare a model of transformers that FSDP (1 or 2) has sharded for ``generate``.

    transformers encodes the images of a prompt outside the forward pass in which FSDP 2 gathers the parameters of its root. And
    it makes processes whose responses have ended wait for those of the others, but only with models that it has sharded itself.
    """
    from torch.distributed.fsdp import register_fsdp_forward_method

    register_fsdp_forward_method(model, "generate")
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    base._is_fsdp_managed_module = True


def whole_root(wrapped: Any) -> AbstractContextManager[Any]:
    """Gathers the parameters of FSDP 1's root, as TRL's generation does; the others are gathered in each pass."""
    from torch.distributed.fsdp import FullyShardedDataParallel

    if not isinstance(wrapped, FullyShardedDataParallel):
        return nullcontext()
    summoned: AbstractContextManager[Any] = FullyShardedDataParallel.summon_full_params(wrapped, recurse=False, writeback=False)
    return summoned
