"""One process of an evaluation by several: ``sharded_evaluation.py WRAPPER CONFIG BATCH [slow]``, started by torchrun.

The weights are those of the configuration, under DDP (``whole``), ``fsdp1`` or ``fsdp2``. ``slow``: each screenshot that the
first process reads takes as many rounds without requests as fit into the time after which a process gives up.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import distributed

from guieval.running.runner.image_cache import ImageLoader
from guieval.training.config import parse_config
from guieval.training.evaluation import Evaluator
from guieval.training.lockstep import BEATS, LockstepEngine
from guieval.training.sharding import let_generate, whole_root
from guieval.training.weights import load_weights
from tests.waiting import auntil


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


def slow_screenshots(engine: LockstepEngine) -> list[int]:
    """Let every screenshot take :data:`BEATS` rounds without requests; these rounds, as they come."""
    beats: list[int] = []
    hold, load = engine._round, ImageLoader.load

    def counted(of: int | None = None) -> None:
        hold(of)
        if of == 0:
            beats.append(len(beats))

    async def late(loader: ImageLoader, image: Any) -> Any:
        before = len(beats)
        await auntil(lambda: len(beats) >= before + BEATS, "rounds without requests", within=300)
        return await load(loader, image)

    engine._round, ImageLoader.load = counted, late  # type: ignore[method-assign, assignment]
    return beats


def main(wrapper: str, file: str, batch: str, *slow: str) -> None:
    torch.set_num_threads(1)
    config = parse_config(yaml.safe_load(Path(file).read_text(encoding="utf-8")))
    assert config.evaluation is not None
    distributed.init_process_group("gloo", timeout=timedelta(minutes=5))
    rank, processes = distributed.get_rank(), distributed.get_world_size()
    adapter = config.open_adapter()
    weights = load_weights(config, adapter)
    whole = held(weights.model)
    model = wrapped(weights.model, wrapper)
    assert held(model) < 0.6 * whole or wrapper == "whole"
    group: dict[str, Any] = {"processes": processes, "rank": rank, "batch": int(batch), "sharded": wrapper != "whole"}
    engine = LockstepEngine(weights.checkpoint, timeout=2.0 if slow else 300.0, seed=config.seed, **group)
    beats = slow_screenshots(engine) if slow and not rank else []
    evaluator = Evaluator(config, config.evaluation, adapter, engine)
    unwrapped = model if wrapper == "fsdp2" else model.module
    let_generate(unwrapped)
    unwrapped.train()
    for step in (0, 1):
        with whole_root(model):
            figures = evaluator.evaluate(step, unwrapped, weights.processor)
        assert (figures is None) == bool(rank)
        assert unwrapped.training
    assert len(beats) >= BEATS or not slow or rank
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
