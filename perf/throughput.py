"""Rebuilds a known load test of a peer toolkit and measures ours on it: serving time over the bound, CPU a step, memory.

200 episodes of 1080x2400 screenshots in the processed AndroidControl layout (lengths lognormal(1.75, 0.48), clipped to 3 to
20; PNGs of about 450 KiB), a mock server with lognormal latency (sigma 0.6) and 64 slots, 64 requests at a time. The server's
latency is a function of episode and request number alone, so the bounds are exact: sum of latencies / 64 offline, and at
least the longest chain in a sequential mode. No client can know a latency beforehand, so beside each ratio stands what its
schedule would take if the client cost nothing. Client and server share this machine's cores; compare ratios, not seconds.

    python perf/throughput.py              # latency 0.5 s and 0, and memory at 200 and 2,000 episodes: about 4 minutes
    python perf/throughput.py --slow       # also latency 5 s: 4 more minutes
    python perf/throughput.py --adaptive   # only --concurrency auto beside fixed ones: 10 minutes
    python perf/throughput.py --vllm       # only the forms of screenshots with real vLLM (perf/vllm_images.py): 5 minutes
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guieval.data.benchmark import EpisodeRef
from guieval.playground.mock_server import latency_of
from guieval.running.runner.scheduler import ActiveEpisode, Scheduler
from guieval.steps import EpisodeKey

SLOTS = 64
SIZE = (1080, 2400)
FIRST_EPISODE = 100_000
PEER = {  # serving seconds over the bound, CPU ms a step, MiB, steps/s, as measured of the peer on a machine of this size
    "offline 0.5": "7.1 x, 62 ms, 13,800 MiB",
    "soeval 0.5": "7.1 x, 62 ms, 13,800 MiB",
    "offline 5.0": "3.1 x",
    "soeval 5.0": "3.1 x",
    "offline 0.0": "22 steps/s",
}


def reference(draw: random.Random, boxes: list[list[float]]) -> dict[str, Any]:
    """One step's label in the processed layout; most clicks are where the mock server clicks."""
    kind = draw.choices(("click", "scroll", "type", "open", "wait", "back", "long"), (62, 12, 8, 7, 5, 5, 1))[0]
    label: dict[str, Any] = {"result_action_type": 4, "result_action_text": "", "result_action_app_name": "", "duration": None}
    touch = lift = [-1.0, -1.0]
    if kind == "click":
        y, x, h, w = draw.choice(boxes)
        centre = draw.random() < 0.7
        touch = [0.5 + draw.uniform(-0.01, 0.01), 0.5 + draw.uniform(-0.01, 0.01)] if centre else [y + h / 2, x + w / 2]
        lift = touch
    elif kind == "scroll":
        touch, lift = [0.7, 0.5], [0.3, 0.5]
    elif kind == "long":
        touch = lift = [0.5, 0.5]
        label["result_action_type"] = 0
    else:
        label["result_action_type"] = {"type": 3, "open": 12, "wait": 1, "back": 5}[kind]
        label["result_action_text"] = "some words" if kind == "type" else ""
        label["result_action_app_name"] = "Some App" if kind == "open" else ""
    return {**label, "result_touch_yx": json.dumps(touch), "result_lift_yx": json.dumps(lift)}


def lengths(episodes: int) -> list[int]:
    """Steps of each episode. The seed is the first whose 200 episodes have 1,262 steps and at most 19, as the peer's had."""
    draw = random.Random(864)
    return [min(20, max(3, round(draw.lognormvariate(1.75, 0.48)))) for _ in range(episodes)]


def build(folder: Path, episodes: int, paint: Callable[[random.Random], bytes]) -> int:
    """Write the data set; pictures are hard links to 60 files. Returns the number of steps."""
    draw = random.Random(7)
    pictures = folder / "pictures"
    pictures.mkdir(parents=True)
    for number in range(60):
        (pictures / f"{number}.png").write_bytes(paint(draw))
    total = 0
    for episode, length in enumerate(lengths(episodes), FIRST_EPISODE):
        steps = []
        shots = folder / "screenshots" / str(episode)
        shots.mkdir(parents=True)
        for step in range(length):
            path = shots / f"screenshot_{episode}_{step}.png"
            os.link(pictures / f"{draw.randrange(60)}.png", path)
            boxes = []
            for _ in range(draw.randint(50, 150)):
                h, w = draw.uniform(0.01, 0.3), draw.uniform(0.01, 0.3)
                boxes.append([draw.uniform(0, 1 - h), draw.uniform(0, 1 - w), h, w])
            label = reference(draw, boxes)
            if step == length - 1:
                label.update(result_action_type=10, result_touch_yx="[-1.0, -1.0]", result_lift_yx="[-1.0, -1.0]")
            steps.append(
                {
                    "episode_id": episode,
                    "step_id": step,
                    "episode_length": length,
                    "image_width": SIZE[0],
                    "image_height": SIZE[1],
                    "image_path": str(path),
                    "instruction": f"[EP{episode}] Do something with the list and open the third row of it.",
                    "low_instruction": f"do part {step}",
                    "ui_positions": json.dumps(boxes),
                    "subset": "android_control",
                    **label,
                }
            )
        target = folder / "test" / "android_control" / str(episode)
        target.mkdir(parents=True)
        (target / f"{episode}.json").write_text(json.dumps(steps))
        total += length
    return total


def floor(episodes: int, latency: float, seed: int, *, sequential: bool) -> float:
    """Seconds that the client's schedule takes when the client costs nothing: what the order of unknown latencies loses."""
    keys = [EpisodeKey("", "", str(number)) for number in range(FIRST_EPISODE, FIRST_EPISODE + episodes)]
    refs = [EpisodeRef(key, length) for key, length in zip(keys, lengths(episodes), strict=True)]

    def activate(ref: EpisodeRef) -> ActiveEpisode:
        return ActiveEpisode(ref, None, list(range(ref.length)))

    scheduler = Scheduler(refs, activate, sequential=sequential, window=4 * SLOTS)
    asked: Counter[str] = Counter()
    running: list[tuple[float, int, ActiveEpisode]] = []
    now, serial = 0.0, 0
    while True:
        while len(running) < SLOTS and (taken := scheduler.take()) is not None:
            tag = f"[EP{taken[0].ref.key.episode_id}]"
            heapq.heappush(running, (now + latency_of(seed, tag, asked[tag], latency, 0.6), serial, taken[0]))
            asked[tag] += 1
            serial += 1
        if not running:
            return now
        now, _, active = heapq.heappop(running)
        scheduler.finished(active)


def idle_share(log: Path, slots: int, *, sequential: bool) -> float:
    """Share of the server's slots that were idle while a step was ready, from the first request to the end of the last.

    A step is ready as soon as nothing but the client keeps it from being asked: from the start of the run, or in a sequential
    mode from the end of the episode's step before. So the share is the client's fault alone, whatever the latencies are.
    """
    lines: list[dict[str, Any]] = [json.loads(line) for line in log.read_text().splitlines()]
    lines.sort(key=lambda line: line["arrival"])
    start: float = lines[0]["arrival"]
    end: float = max(line["end"] for line in lines)
    answered: dict[str, float] = {}
    changes: list[tuple[float, int, int]] = []  # time, change of the busy slots, change of the ready steps
    for line in lines:
        ready = answered.get(line["tag"], start) if sequential else start
        changes += [(ready, 0, 1), (line["arrival"], 1, -1), (line["end"], -1, 0)]
        answered[line["tag"]] = line["end"]
    idle, busy, waiting, last = 0.0, 0, 0, start
    for now, began, became_ready in sorted(changes):
        idle += (now - last) * min(max(0, slots - busy), waiting)
        busy, waiting, last = busy + began, waiting + became_ready, now
    return idle / (slots * (end - start))


@dataclass
class Measured:
    """One run of the client, as the kernel and the server saw it."""

    steps: int
    serving: float
    bound: float
    cpu: float
    mebibytes: float
    in_flight: int
    idle: float


def measure(
    data: Path,
    mode: str,
    latency: float,
    seed: int,
    work: Path,
    model: str,
    *,
    slots: int = SLOTS,
    concurrency: str = str(SLOTS),
    limit: int | None = None,
) -> Measured:
    """Run ``guieval run`` once against a fresh mock server."""
    log_file = work / "server.jsonl"
    log_file.unlink(missing_ok=True)
    server = subprocess.Popen(
        f"{sys.executable} -m guieval dev mock-server --port 0 --model {model} --policy centre "
        f"--latency {latency} --sigma 0.6 --seed {seed} --slots {slots} --log {log_file}".split(),
        stdout=subprocess.PIPE,
        text=True,
    )
    out = work / f"{data.name}-{mode}-{latency}"
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        if found is None:
            raise SystemExit("the mock server did not start")
        url = found.group()
        command = [sys.executable, "-m", "guieval", "run", "--model", model, "--bench", "androidcontrol", "--mode", mode]
        command += ["--data", str(data), "--base-url", url, "--out", str(out), "--concurrency", concurrency, "--quiet"]
        command += [] if limit is None else ["--limit", str(limit)]
        with (work / "client.log").open("w") as log:
            client = subprocess.Popen(command, stdout=log, stderr=log)
            _, status, usage = os.wait4(client.pid, 0)
            client.returncode = os.waitstatus_to_exitcode(status)
        if client.returncode:
            raise SystemExit((work / "client.log").read_text())
        with urllib.request.urlopen(url.removesuffix("/v1") + "/stats") as answer:
            stats = json.load(answer)
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(out, ignore_errors=True)
    sequential = mode != "offline"
    bound = stats["latency_sum"] / slots
    if sequential:
        bound = max(bound, stats["longest_chain"])  # one episode's steps follow each other
    serving = stats["last_time"] - stats["first_time"]
    cpu = usage.ru_utime + usage.ru_stime
    idle = idle_share(log_file, slots, sequential=sequential)
    return Measured(stats["served"], serving, bound, cpu, usage.ru_maxrss / 1024, stats["max_in_flight"], idle)


def start_cost(repeats: int = 3) -> float:
    """CPU seconds of starting the program without doing anything, the least of a few tries."""
    costs = []
    for _ in range(repeats):
        child = subprocess.Popen(
            [sys.executable, "-c", "import guieval.running.runner, guieval.engines.http.chat_completions, aiohttp, PIL.Image"]
        )
        _, _, usage = os.wait4(child.pid, 0)
        child.returncode = 0
        costs.append(usage.ru_utime + usage.ru_stime)
    return min(costs)


def figures(run: Measured, start: float) -> tuple[float, float]:
    """Serving time over the bound, and CPU milliseconds a step."""
    return run.serving / run.bound, 1000 * (run.cpu - start) / run.steps


def show(title: str, run: Measured, start: float, peer: str, best: float = 0.0) -> None:
    """Print one line of the table."""
    ratio = ""
    if run.bound:
        ratio = f"{run.serving / run.bound:5.2f} x bound {run.bound:6.2f} s (its schedule alone {best / run.bound:4.2f} x)"
    rate = run.steps / run.serving
    each = 1000 * (run.cpu - start) / run.steps
    print(
        f"{title:32} {run.serving:7.2f} s  {ratio:53}  {rate:7.1f} steps/s  {each:5.2f} CPU ms/step  {run.mebibytes:6.0f} MiB"
        f"  {run.in_flight:3d} in flight  {100 * run.idle:4.1f} % of slots idle  {('peer: ' + peer) if peer else ''}",
        flush=True,
    )


ADAPTIVE = ((16, 0.3, 200), (64, 0.6, 600), (256, 2.0, None))
"""Slots of the server, mean latency in seconds, and how many of the 2,000 episodes: runs of about 80, 60 and 50 rounds."""


def adaptive(data: Path, work: Path, model: str) -> None:
    """``--concurrency auto`` beside the best of a few fixed ones, against servers that do 16, 64 and 256 requests at once.

    Screens are blank, so that the server is the limit and not the cores that it shares with the client.
    """
    for slots, latency, limit in ADAPTIVE:
        rates: dict[str, float] = {}
        for concurrency in (str(slots), str(slots * 3 // 2), "auto"):
            run = measure(data, "offline", latency, 1, work, model, slots=slots, concurrency=concurrency, limit=limit)
            rates[concurrency] = run.steps / run.serving
            print(
                f"{slots:4} slots, concurrency {concurrency:>4}: {rates[concurrency]:6.1f} steps/s, "
                f"{run.serving / run.bound:4.2f} x bound {run.bound:5.1f} s, at most {run.in_flight} in flight",
                flush=True,
            )
        found = rates.pop("auto")
        print(f"{slots:4} slots: auto reaches {100 * found / max(rates.values()):.1f} % of the best fixed one", flush=True)


def main() -> None:
    """Run the load test."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slow", action="store_true", help="also latency 5 s")
    parser.add_argument("--model", default="qwen2.5-vl-7b", help="checkpoint to run")
    parser.add_argument("--vllm", action="store_true", help="only the forms of screenshots with real vLLM")
    parser.add_argument("--adaptive", action="store_true", help="only --concurrency auto beside fixed ones: about 10 minutes")
    arguments = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this may be run as a file
    from perf.screens import blank, picture

    if arguments.vllm:
        from perf.vllm_images import main as compare_forms

        compare_forms()
        return
    work = Path(tempfile.mkdtemp(prefix="guieval-load-"))
    try:
        small, large = work / "small", work / "large"
        if arguments.adaptive:
            print(f"{build(large, 2000, blank)} steps of 2,000 episodes; {os.cpu_count()} cores")
            adaptive(large, work, arguments.model)
            return
        steps = [build(folder, count, picture) for folder, count in ((small, 200), (large, 2000))]
        print(f"{steps[0]} steps of 200 episodes, {steps[1]} steps of 2,000; {os.cpu_count()} cores")
        start = start_cost()
        print(f"start-up {start:.2f} CPU s (left out of CPU ms/step)")
        for latency, seeds in ((0.5, (1, 2, 3)), (5.0, (1,) if arguments.slow else ()), (0.0, (1,))):
            for mode in ("offline", "soeval"):
                runs = []
                for seed in seeds:
                    run = measure(small, mode, latency, seed, work, arguments.model)
                    best = floor(200, latency, seed, sequential=mode != "offline")
                    show(f"{mode}, latency {latency} s, seed {seed}", run, start, PEER.get(f"{mode} {latency}", ""), best)
                    runs.append(run)
                if len(runs) > 1:
                    ratio, cpu = (
                        statistics.median(values) for values in zip(*(figures(run, start) for run in runs), strict=True)
                    )
                    print(f"{mode}, latency {latency} s: median {ratio:.2f} x bound, {cpu:.2f} CPU ms/step")
        for mode in ("offline", "soeval"):
            run = measure(large, mode, 0.0, 1, work, arguments.model)
            show(f"{mode}, 2,000 episodes", run, start, "10.3 MiB more a step")
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
