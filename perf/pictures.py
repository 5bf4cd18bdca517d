"""Measures what a step's picture costs a run: CPU at the first sight of its content, and when that was checked before.

Two data folders of 1080x2400 PNGs of about 420 KiB: in one no two files have the same content, in the other all have. Every
figure is the difference between a long and a short run, so that what a run costs by itself is left out, over what zlib takes to
unpack such a picture in the same turn: the machine's speed and what else runs on it change both. The least ratio of a few turns
is printed, and milliseconds beside it.

    python -m perf.pictures [TURNS]
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

from perf.screens import picture
from perf.throughput import build, lengths, measure
from perf.vllm_images import marked

EPISODES = 64
FEW, MANY = 8, 64
"""Episodes of the short and of the long run."""
GOALS = {"first sight": 7.0 / 6.0, "checked before": 3.0 / 6.0}
"""Times what zlib takes: 7 and 3 ms on a machine where that is 6 ms."""


@dataclass
class Turn:
    """One turn: milliseconds of CPU a step, and of zlib a picture."""

    step: float
    unpacking: float


def unpacking(pictures: list[bytes]) -> float:
    """CPU milliseconds that zlib takes to unpack one picture."""
    began = time.thread_time()
    for data in pictures:
        unpacker, position = zlib.decompressobj(), 8
        while position < len(data):
            length = int.from_bytes(data[position : position + 4], "big")
            if data[position + 4 : position + 8] == b"IDAT":
                unpacker.decompress(data[position + 8 : position + 8 + length])
            position += 12 + length
    return 1000 * (time.thread_time() - began) / len(pictures)


def folders(work: Path) -> dict[str, Path]:
    """The data folders by what a run over them measures."""
    build(work / "first", EPISODES, picture)
    build(work / "again", EPISODES, picture)
    for file in (work / "first" / "screenshots").rglob("*.png"):
        data = marked(file.read_bytes(), file.stem)
        file.unlink()  # it is a link
        file.write_bytes(data)
    one = (work / "again" / "pictures" / "0.png").read_bytes()
    for file in (work / "again" / "pictures").iterdir():
        file.write_bytes(one)
    return {"first sight": work / "first", "checked before": work / "again"}


def turn(data: Path, work: Path, pictures: list[bytes]) -> Turn:
    """A short and a long run over a folder."""
    before = unpacking(pictures)
    few, many = (measure(data, "offline", 0.0, 1, work, "qwen2.5-vl-7b", limit=count) for count in (FEW, MANY))
    after = unpacking(pictures)
    return Turn(1000 * (many.cpu - few.cpu) / (many.steps - few.steps), (before + after) / 2)


def main() -> None:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory(prefix="guieval-pictures-") as temporary:
        work = Path(temporary)
        data = folders(work)
        draw = random.Random(1)
        pictures = [picture(draw) for _ in range(8)]
        print(f"{sum(lengths(EPISODES))} steps, {turns} turns", flush=True)
        found: dict[str, list[Turn]] = {name: [] for name in data}
        for _ in range(turns):
            for name, folder in data.items():
                found[name].append(turn(folder, work, pictures))
        for name, measured in found.items():
            ratio = min(each.step / each.unpacking for each in measured)
            step, zlibs = (statistics.median(values) for values in zip(*((t.step, t.unpacking) for t in measured), strict=True))
            print(
                f"{name:15} {ratio:5.2f} x zlib (goal: at most {GOALS[name]:.2f}); median {step:5.2f} CPU ms a step, "
                f"zlib {zlibs:5.2f} ms a picture",
                flush=True,
            )


if __name__ == "__main__":
    main()
