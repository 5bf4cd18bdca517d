"""Runs ``guieval`` with faults: ``python faults.py FAULT:STEP[:RANK] ... guieval train ...``, in one process or by torchrun.

``kill``: SIGKILL after an optimiser step. ``kill-in-save``: SIGKILL while its checkpoint is written, the weights already are.
``memory``: what torch raises when a GPU is full. ``server``: the rollouts of that step ask a vLLM server that has ended, by
TRL's own client. ``refuse-exit``: an error, and a thread that never lets the process end. ``fsdp``: (no step) FSDP on CPUs,
which accelerate offers on GPUs only.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from functools import wraps
from typing import Any

import torch

torch.set_num_threads(1)


def killed(*arguments: Any, **named: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def out_of_memory(*arguments: Any, **named: Any) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def ask_dead_server(*arguments: Any, **named: Any) -> None:
    """Ask as TRL does, except that it would also need vLLM's package, and waits longer between its tries."""
    import socket

    import requests
    from requests.adapters import HTTPAdapter
    from trl.generation.vllm_client import VLLMClient
    from urllib3.util.retry import Retry

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    client = VLLMClient.__new__(VLLMClient)
    client.session = requests.Session()
    client.session.mount("http://", HTTPAdapter(max_retries=Retry(total=1)))
    client.base_url, client.model = f"http://127.0.0.1:{port}", "tiny-policy"
    client.generate([[1, 2, 3]])


def refuse_exit(*arguments: Any, **named: Any) -> None:
    threading.Thread(target=lambda: time.sleep(600)).start()
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def install(fault: str, step: int, rank: int | None) -> None:
    from transformers import Trainer
    from trl import GRPOTrainer

    import guieval.training.trainers.groups  # checks TRL's methods as they are  # noqa: F401

    kind, name, does, after = {
        "kill": (Trainer, "_maybe_log_save_evaluate", killed, True),
        "kill-in-save": (Trainer, "_save_rng_state", killed, False),
        "memory": (Trainer, "training_step", out_of_memory, False),
        "server": (GRPOTrainer, "_generate_single_turn", ask_dead_server, False),
        "refuse-exit": (Trainer, "training_step", refuse_exit, False),
    }[fault]
    original = getattr(kind, name)
    counted = step if fault.startswith("kill") else step - 1  # in the middle of a step it is not counted yet

    @wraps(original)
    def faulty(self: Any, *arguments: Any, **named: Any) -> Any:
        due = self.state.global_step == counted and (rank is None or self.accelerator.process_index == rank)
        if due and not after:
            does()
        result = original(self, *arguments, **named)
        if due:
            does()
        return result

    setattr(kind, name, faulty)


def fsdp_on_cpus() -> None:
    import accelerate.state
    from accelerate.utils import DistributedType

    original, given = accelerate.state.AcceleratorState.__init__, []

    def shared(self: Any, *arguments: Any, fsdp_plugin: Any = None, **named: Any) -> None:
        original(self, *arguments, fsdp_plugin=fsdp_plugin, **named)
        if fsdp_plugin is not None:
            given.append(fsdp_plugin)
        if given:
            self.distributed_type, self.fsdp_plugin = DistributedType.FSDP, given[-1]

    accelerate.state.AcceleratorState.__init__ = shared


if __name__ == "__main__":
    end = sys.argv.index("guieval")
    for each in sys.argv[1:end]:
        fault, *numbers = each.split(":")
        if fault == "fsdp":
            fsdp_on_cpus()
        else:
            install(fault, int(numbers[0]), int(numbers[1]) if numbers[1:] else None)
    sys.argv[1 : end + 1] = []
    from guieval.cli import main

    main()
