"""Records of servers that were left running: one JSON file per server, named by the digest of the server's command."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from guieval.data.files import read_bytes, read_text

_SHAPING = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "HF_HOME")


@dataclass(frozen=True)
class KeptServer:
    """A server left running: its supervisor's process id and start (kernel ticks), its port, its log, its command."""

    pid: int
    started: int
    port: int
    log: str
    command: list[str]

    @property
    def alive(self) -> bool:
        """Whether the process still runs; its id may have been reused."""
        return process_start(self.pid) == self.started


def process_start(pid: int) -> int | None:
    """The start of a process in kernel ticks since boot; ``None`` if it has ended, also if it is a zombie."""
    try:
        fields = read_bytes(Path(f"/proc/{pid}/stat")).rpartition(b")")[2].split()
    except OSError:
        return None
    # fields of proc(5) from the third on: the state, and as the 22nd the start
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def command_digest(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """A digest of the command, the contents of its chat templates, and the environment variables that vLLM reads."""
    templates = [Path(word) for option, word in pairwise(command) if option == "--chat-template"]
    texts = [sha256(read_bytes(file)).hexdigest() for file in templates if file.is_absolute() and file.is_file()]
    shaping = {name: value for name, value in environment.items() if name.startswith("VLLM_") or name in _SHAPING}
    return sha256(json.dumps([list(command), texts, sorted(shaping.items())]).encode()).hexdigest()[:16]


def read_kept(file: Path) -> KeptServer | None:
    """The record of a server that still runs; any other record is removed."""
    try:
        kept = KeptServer(**json.loads(read_text(file)))
        if kept.alive:
            return kept
    except (OSError, ValueError, TypeError):
        pass
    with contextlib.suppress(OSError):
        file.unlink()
    return None


@contextlib.contextmanager
def only_one(file: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a lock file; until it is free, ``waiting`` is called about once a second and may raise."""
    import fcntl

    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with file.open("a") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waiting()
                time.sleep(1.0)
        yield
