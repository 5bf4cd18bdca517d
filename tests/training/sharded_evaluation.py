"""One process of an evaluation by several: ``sharded_evaluation.py WRAPPER CONFIG BATCH TIMEOUT [slow]``, started by torchrun.

The weights are those of the configuration, under DDP (``whole``), ``fsdp1`` or ``fsdp2``. ``slow``: each screenshot that the
first process reads takes as long as the timeout.
"""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import distributed

from guieval.training.config import parse_config
from guieval.training.evaluation import Evaluator
from guieval.training.lockstep import LockstepEngine
from guieval.training.sharding import let_generate, whole_root
from guieval.training.weights import load_weights


def wrapped(model: Any, wrapper: str) -> Any:
    blocks = [*model.model.language_model.layers, *model.model.visual.blocks]
    if wrapper == "fsdp1":
        from torch.distributed.fsdp import FullyShardedDataParallel
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy

        policy = ModuleWrapPolicy({type(block) for block in blocks})
        device = torch.device("cpu")
        return FullyShardedDataParallel(model, auto_wrap_policy=policy, device_id=device, use_orig_params=True)
    if wrapper == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
        for block in [*blocks, model]:
            fully_shard(block, mesh=mesh)
        return model
    return torch.nn.parallel.DistributedDataParallel(model)


def held(model: Any) -> int:
    """The weights in this process."""
    return sum(getattr(each, "to_local", lambda each=each: each)().numel() for each in model.parameters())


def main(wrapper: str, file: str, batch: str, timeout: str, *slow: str) -> None:
    torch.set_num_threads(1)
    seconds = float(timeout)
    config = parse_config(yaml.safe_load(Path(file).read_text(encoding="utf-8")))
    assert config.evaluation is not None
    distributed.init_process_group("gloo", timeout=timedelta(seconds=seconds))
    rank, processes = distributed.get_rank(), distributed.get_world_size()
    adapter = config.open_adapter()
    weights = load_weights(config, adapter)
    whole = held(weights.model)
    model = wrapped(weights.model, wrapper)
    assert held(model) < 0.6 * whole or wrapper == "whole"
    if slow and not rank:
        from guieval.running.runner.image_cache import ImageLoader

        load = ImageLoader.load

        async def late(self: Any, image: Any) -> Any:
            import asyncio

            await asyncio.sleep(seconds)
            return await load(self, image)

        ImageLoader.load = late  # type: ignore[method-assign]
    engine = LockstepEngine(
        weights.checkpoint,
        processes=processes,
        rank=rank,
        batch=int(batch),
        timeout=seconds,
        seed=config.seed,
        sharded=wrapper != "whole",
    )
    evaluator = Evaluator(config, config.evaluation, adapter, engine)
    unwrapped = model if wrapper == "fsdp2" else model.module
    let_generate(unwrapped)
    unwrapped.train()
    began = time.monotonic()
    for step in (0, 1):
        with whole_root(model):
            figures = evaluator.evaluate(step, unwrapped, weights.processor)
        assert (figures is None) == bool(rank)
        assert unwrapped.training
    if slow:
        assert time.monotonic() - began > seconds
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
