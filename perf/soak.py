"""A soak: 100,000 steps of the demo against the mock server; memory must not grow with the run, and no record may be missing.

The server answers at random and now and then misbehaves (one answer in 200 is a status 500). The client's memory is read from
/proc once a second. The first half of the steps is let go for warming up (caches are bounded but fill slowly); what counts is
how much the second half adds. At the end the journal is read: every planned step once, none unfinished, none twice.

    python perf/soak.py                  # 100,000 steps: draws them first where they are missing; an hour on two cores
    python perf/soak.py --steps 5000     # a taste: three minutes
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from guieval.journal import RunFolder
from guieval.registry import load_benchmark

MODEL = "qwen2.5-vl-7b"
STEPS_AN_EPISODE = 6.3
ALLOWED = 0.25  # KiB a step: what the figures need of a step (guieval.metrics.tally), and the list of episodes


def resident(pid: int) -> float:
    """A process's resident memory in KiB; 0 when it is gone."""
    try:
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0.0
    return float(found[1]) if found else 0.0


def finished_steps(journal: Path, seen: list[int]) -> int:
    """How many lines a growing journal has; ``seen`` keeps the bytes and lines counted before."""
    if journal.exists():
        with journal.open("rb") as stream:
            stream.seek(seen[0])
            more = stream.read()
        end = more.rfind(b"\n") + 1
        seen[0] += end
        seen[1] += more[:end].count(b"\n")
    return seen[1]


def draw(data: Path, episodes: int, part: int, parts: int) -> None:
    """Draw every ``parts``-th episode's screenshots, from episode ``part`` on."""
    benchmark = load_benchmark("demo", data, episodes=episodes)
    for ref in benchmark.index()[part::parts]:
        benchmark.load(ref)


def soak(episodes: int, data: Path, out: Path, mode: str) -> list[tuple[int, float]]:
    """Run once; (finished steps, KiB) of every second."""
    command = "dev mock-server --port 0 --policy random --error-rate 0.005 --slots 64"
    server = subprocess.Popen(
        [sys.executable, "-m", "guieval", *command.split(), "--model", MODEL], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        if found is None:
            raise SystemExit("the mock server did not start")
        command = f"run --model {MODEL} --bench demo --mode {mode} --base-url {found.group()} --concurrency 64 --quiet"
        client = subprocess.Popen(
            [
                *(sys.executable, "-m", "guieval", *command.split(), "--data", str(data), "--out", str(out)),
                *("--set", f"bench_options.episodes={episodes}"),
            ],
            stdout=subprocess.DEVNULL,
        )
        seen, samples = [0, 0], []
        while client.poll() is None:
            time.sleep(1)
            memory = resident(client.pid)
            if memory:
                samples.append((finished_steps(out / "steps.jsonl", seen), memory))
        if client.returncode:
            raise SystemExit(f"the run ended with exit code {client.returncode}; `guieval run --resume {out}` says more")
        return samples
    finally:
        server.terminate()
        server.wait()


def lost_and_doubled(out: Path) -> tuple[int, int, int]:
    """Planned steps, those of them without a finished record, and those with more than one."""
    planned = RunFolder(out).plan
    found = Counter(record.task.key[1:] for record in RunFolder(out).records if record.finished)
    wanted = [(key.subset, key.episode_id, index) for key, steps in planned.items() for index in steps]
    return len(wanted), sum(found[key] == 0 for key in wanted), sum(found[key] > 1 for key in wanted)


def main() -> None:
    """Run the soak and say whether it held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--mode", default="soeval")
    parser.add_argument("--data", type=Path, help="folder for the demo's screenshots, 12 KiB each (default: a temporary one)")
    arguments = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="guieval-soak-"))
    try:
        data = arguments.data or work / "data"
        data.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        episodes = max(1, round(arguments.steps / STEPS_AN_EPISODE))
        parts = os.cpu_count() or 1
        # drawn now, so that the run's memory and speed are not those of drawing
        with ProcessPoolExecutor(parts) as pool:
            list(pool.map(draw, *zip(*((data, episodes, part, parts) for part in range(parts)), strict=True)))
        print(f"drawn in {time.monotonic() - began:.0f} s", flush=True)
        began = time.monotonic()
        samples = soak(episodes, data, work / "run", arguments.mode)
        seconds = time.monotonic() - began
        planned, lost, doubled = lost_and_doubled(work / "run")
        half = [(steps, memory) for steps, memory in samples if steps >= planned / 2]
        slope = statistics.linear_regression(*zip(*half, strict=True)).slope if len(half) > 2 else float("nan")
        peak = max(memory for _, memory in samples) / 1024
        for share in (0.1, 0.25, 0.5, 0.75, 1.0):
            memory = next((memory for steps, memory in samples if steps >= share * planned * 0.999), samples[-1][1])
            print(f"  {share:4.0%} of the steps: {memory / 1024:6.1f} MiB")
        rate = planned / seconds
        print(f"{planned:,} steps in {seconds:.0f} s ({rate:.0f} steps/s), peak {peak:.1f} MiB, {parts} cores")
        print(f"second half: {slope:.3f} KiB a step (allowed {ALLOWED}); {lost} records missing, {doubled} doubled")
        print(json.dumps({"steps": planned, "seconds": seconds, "peak_mib": peak, "kib_a_step": slope, "lost": lost}))
        if lost or doubled or not slope <= ALLOWED:
            raise SystemExit("the soak did not hold")
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
