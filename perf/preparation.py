"""Measures reading AndroidControl's release: episodes a second and peak memory. Run it as ``python perf/preparation.py``.

A release of made-up episodes on screens of 1080 x 2400 pixels is written to a temporary folder, a few distinct ones under many
ids. Each measurement is a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from guieval.benchmarks._examples.androidcontrol import features, fitting_episodes, shard_name, write_release
from guieval.benchmarks._examples.tfrecord import example, write_records

from guieval.data.episodes.prepare import prepare
from guieval.registry import benchmarks

DISTINCT = 8
SIZE = (1080, 2400)
SHARDS = 4
IMAGE_BYTES = 500_000
"""What a screenshot of the real release takes on average (50 GB for about 100,000); made-up ones compress far better."""


def write(folder: Path, episodes: int) -> None:
    phones = fitting_episodes(0, DISTINCT, SIZE)
    ids = range(episodes)
    write_release(folder, {}, splits={"train": [], "validation": [], "test": ids}, subsplits={"IDD": ids}, shards=SHARDS)
    noise = random.Random(0)
    made = [features(0, phone) for phone in phones]
    for held in made:  # what follows a PNG's end is not part of the image
        images = [image for image in held["screenshots"] if isinstance(image, bytes)]
        held["screenshots"] = [image + noise.randbytes(max(0, IMAGE_BYTES - len(image))) for image in images]
    for shard in range(SHARDS):
        records = (example({**made[name % DISTINCT], "episode_id": [name]}) for name in ids[shard::SHARDS])
        write_records(folder / shard_name(shard, SHARDS), records)


def pass_over(source: Path) -> int:
    """Every episode done already: what a resume pays for what it skips."""
    release = benchmarks()["androidcontrol"].release(source)
    return sum(1 for part in release.parts() for _ in release.episodes(part, lambda key: True))


def stream(source: Path) -> int:
    """Labels and boxes of every episode, images left inside."""
    release = benchmarks()["androidcontrol"].release(source)
    return sum(1 for part in release.parts() for _ in release.episodes(part, lambda key: False))


def whole(source: Path) -> int:
    """The whole preparation, images written."""
    with tempfile.TemporaryDirectory() as out:
        return prepare(benchmarks()["androidcontrol"], source, Path(out) / "out").added


MEASURED: dict[str, Callable[[Path], int]] = {"passed over": pass_over, "streamed": stream, "prepared": whole}


def measure(name: str, source: Path) -> None:
    start = time.perf_counter()
    count = MEASURED[name](source)
    seconds = time.perf_counter() - start
    megabytes = sum(file.stat().st_size for file in source.iterdir()) / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{name:12} {count:5} episodes given  {megabytes / seconds:6.0f} MB of shards/s  {seconds:6.2f} s  peak {peak:5.0f} MiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--measure", choices=sorted(MEASURED), help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.source)
        return
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "release"
        write(source, options.episodes)
        size = sum(file.stat().st_size for file in source.iterdir())
        print(f"{options.episodes} episodes, {size / 1e6:.0f} MB in {SHARDS} shards")
        for name in MEASURED:
            command = [sys.executable, __file__, "--measure", name, "--source", str(source)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
