"""What memory, disk, servers and other processes do to a training: one sentence, the last checkpoint as it was, a resume."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from guieval.errors import EngineError, JournalError, UsageError
from guieval.training.checkpoints import mark
from guieval.training.config import TrainingConfig
from guieval.training.failures import TrainingFailed, explained, explanation
from guieval.training.session import train
from guieval.training.trainings import checkpoints
from tests.conftest import REPOSITORY
from tests.programs import started
from tests.rows import every_row

from .conftest import Configured, Done, launched, log, written
from .thought_server import Server


def sentence(done: Done) -> str:
    """The sentence that a process ended with, without a traceback before it."""
    assert "Traceback" not in done.stderr, done.stderr[:6000]
    return next(line for line in done.stderr.splitlines() if line.startswith("guieval: "))


def losses(config: TrainingConfig) -> list[int]:
    return [line["step"] for line in log(config) if "loss" in line]


class SafetensorError(Exception):
    """As of safetensors, which not every environment has."""


@every_row(
    ("error", "words"),
    [
        (MemoryError(), "too little memory (MemoryError): set a smaller trainer.per_device_train_batch_size"),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you"), "too little"),
        (RuntimeError("CUDA error: out of memory"), "too little memory (CUDA error: out of memory)"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "too little memory"),
        (OSError(errno.ENOSPC, "No space left on device"), "0 MB are free ([Errno 28] No space left on device): make room"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "the disk of 'OUT' is full"),
        (RuntimeError("[enforce fail at inline_container.cc:672] . PytorchStreamWriter failed writing file data/7"), "full"),
        (RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 15180544 vs 15180432"), "'OUT' is full"),
        (SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"), "'OUT' is full"),
        (JournalError("cannot write 'x': No space left on device"), "the disk of 'OUT' is full"),
        (Exception("Request failed: 502, bad gateway"), "the rollout server does not answer (Request failed: 502"),
        (ConnectionError("The vLLM server can't be reached at http://h:1 after 0.0 seconds."), "the rollout server does not"),
        (EngineError("no answer"), "no answer"),
    ],
    ids=str,
)
def test_failures_of_the_surroundings_are_named(error: Exception, words: str) -> None:
    found = explanation(error, Path("OUT"))
    assert found is not None and words in found


@every_row(
    "error",
    [
        ValueError("out of memory"),
        RuntimeError("mat1 and mat2 shapes cannot be multiplied"),
        KeyError("step"),
        FileNotFoundError(errno.ENOENT, "No such file"),
        RuntimeError("Connection closed by peer"),  # of one process alone
    ],
    ids=str,
)
def test_failures_of_the_code_keep_their_traceback(error: Exception) -> None:
    assert explanation(error, Path("OUT")) is None
    with pytest.raises(type(error)) as caught, explained(Path("OUT")):
        raise error
    assert caught.value is error


def test_the_clients_of_servers_are_known() -> None:
    requests = pytest.importorskip("requests")
    with pytest.raises(requests.exceptions.RequestException) as caught:
        requests.get("http://127.0.0.1:9/health", timeout=5)
    assert "the rollout server does not answer" in str(explanation(caught.value, Path("OUT")))


def test_it_is_said_what_can_be_resumed_and_which_process_was_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hint(error: Exception) -> str:
        with pytest.raises((TrainingFailed, UsageError)) as caught, explained(tmp_path):
            raise error
        return str(caught.value)

    assert hint(MemoryError()).endswith(f"; no checkpoint was complete yet, so begin again after removing {str(tmp_path)!r}")
    for step in (9, 10):
        folder = tmp_path / "checkpoints" / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        mark(folder)
    assert hint(MemoryError()).endswith("; checkpoint-10 is complete, and --resume continues from it")
    assert hint(UsageError("wrong")) == "wrong"
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    text = "[pair.cc:553] Connection closed by peer [127.0.0.1]:15236"
    with pytest.raises(TrainingFailed) as caught, explained(tmp_path):
        raise RuntimeError(text)
    assert str(caught.value) == f"process 1 has lost another process of this training ({text})"


def test_too_little_memory_in_the_middle(configured: Configured) -> None:
    config = configured("grpo", trainer={"max_steps": 3, "save_steps": 1})
    done = launched(config, faults="memory:3")
    assert done.returncode == 1
    assert sentence(done) == (
        "guieval: too little memory (CUDA out of memory. Tried to allocate 2.00 GiB.): set a smaller "
        "trainer.per_device_train_batch_size or per_device_eval_batch_size, or train with lora or with weights sharded over "
        "GPUs; checkpoint-2 is complete, and --resume continues from it"
    )
    done = launched(config, "--resume")
    assert done.returncode == 0 and losses(config) == [1, 2, 3]


def test_a_dead_rollout_server(configured: Configured) -> None:
    """Asked by TRL's own client."""
    pytest.importorskip("requests", reason="TRL's client needs requests, which this environment lacks")
    config = configured("grpo", trainer={"max_steps": 3, "save_steps": 1})
    done = launched(config, faults="server:3")
    assert done.returncode == 1
    assert "the rollout server does not answer (" in sentence(done)
    assert sentence(done).endswith("start it again; checkpoint-2 is complete, and --resume continues from it")
    assert list(checkpoints(Path(config.out))) == [1, 2]


def test_a_server_of_thoughts_that_ends_and_is_started_elsewhere(configured: Configured) -> None:
    pytest.importorskip("aiohttp", reason="the client of servers needs aiohttp, which this environment lacks")

    def training(server: Server) -> TrainingConfig:
        settings = {"base_urls": [server.url], "model": "other-model", "max_attempts": 1, "patience": 0}
        rollout = {"patch": "off-policy", "budget": None, "server": settings}
        return configured("semi-online", rollout=rollout, trainer={"max_steps": 6, "save_steps": 1}, dynamic_sampling=None)

    first, asked = Server("It is the next icon."), 0
    config = training(first)
    post = first._server.RequestHandlerClass.do_POST  # type: ignore[attr-defined]

    def mortal(handler: object) -> None:
        nonlocal asked
        asked += 1
        if list(checkpoints(Path(config.out))):
            raise ConnectionAbortedError
        post(handler)

    first._server.RequestHandlerClass.do_POST = mortal  # type: ignore[attr-defined]
    first._server.handle_error = lambda *arguments: None  # type: ignore[method-assign]
    resumable = r"checkpoint-[1-5] is complete, and --resume continues from it"
    with pytest.raises(TrainingFailed, match=resumable), explained(Path(config.out)):
        train(config)
    first.stop()
    second = Server("It is the next icon.")
    try:
        train(training(second), resume=True)
    finally:
        second.stop()
    assert losses(config) == [1, 2, 3, 4, 5, 6] and second.asked


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that holds one checkpoint of the tiny policy, and not two."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60m", "none", str(folder)], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("kind", ["sft", "grpo"])
def test_a_full_disk(kind: str, configured: Configured, small_disk: Path, tmp_path: Path) -> None:
    config = configured(kind, out=str(small_disk / "out"), trainer={"max_steps": 3, "save_steps": 1})
    done = launched(config, faults="")
    assert done.returncode == 1
    found = sentence(done)
    assert f"the disk of {config.out!r} is full or fails, " in found
    assert found.endswith("): make room; checkpoint-1 is complete, and --resume continues from it")
    out = Path(config.out)
    assert list(checkpoints(out)) == [1] and list(checkpoints(out, complete=False)) == [2]
    subprocess.run(["mount", "-o", "remount,size=300m", str(small_disk)], check=True)
    done = launched(config, "--resume")
    assert done.returncode == 0, done.stderr[:6000]
    assert losses(config) == [1, 2, 3] and list(checkpoints(out)) == [1, 2, 3]


LAUNCHERS = {
    "torchrun": ["-m", "torch.distributed.run", "--nproc_per_node", "2", "--standalone", "-m"],
    "accelerate": ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1", "-m"],
}
"""As users start several processes; accelerate's own option for CPUs starts one."""


FAULTS = [("torchrun", "memory:2:0"), ("torchrun", "refuse-exit:2:0")]
FAULTS += [("accelerate", "memory:2:1"), ("accelerate", "refuse-exit:2:0")]


@pytest.mark.parametrize(("launcher", "fault"), FAULTS)
def test_an_error_of_one_process_ends_the_others(launcher: str, fault: str, configured: Configured) -> None:
    """Soon, though the others would wait for half an hour, and though a thread keeps the failed one from ending."""
    config = configured("semi-online", trainer={"max_steps": 9, "save_steps": 1, "per_device_train_batch_size": 4})
    arguments = [fault, "guieval", "train", "semi-online", "--config", written(config)]
    command = [sys.executable, *LAUNCHERS[launcher], "tests.training.faults", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with started(command, stderr=subprocess.PIPE, env=environment, cwd=REPOSITORY) as running:
        _, said = running.communicate(timeout=900)  # until the last process has ended
    assert running.returncode != 0
    assert re.search("^guieval: .*too little memory", said, re.MULTILINE), said[:6000]
    assert (Path(config.out) / "checkpoints" / "checkpoint-1" / "rng_state_1.pth").is_file()  # there were two
    assert list(checkpoints(Path(config.out))) == [1]
