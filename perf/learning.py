"""Trains the shipped half-trained policy by the entry points, one training a seed, and keeps the result of each for a report.

Held-out episodes (split `test`) are evaluated by SOP every few optimiser steps with the evaluation's own runner; goals of the
two splits are disjoint. A training takes some ten minutes of one core, in an environment with the extra `train`
(`python tests/environment.py training` makes one and prints its interpreter), and a repeated command goes on where it stopped:

    python -m perf.learning sft --out DIR --seeds 3 4      # supervised, on the reference's actions
    python -m perf.learning offline --out DIR --seeds 3 4  # GRPO on single steps with the reference's history
    python -m perf.learning semi-online --out DIR --seeds 3 4  # UI-S1: own outputs as history, mismatches patched
    python -m perf.learning sampled DIR                # the trained policies and their start once more, at temperature 1
    python -m perf.learning keep DIR                   # add the results to perf/learning.jsonl, from which
    python -m perf.learning_report                     # makes the tables of docs/development/learning.md
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from guieval.journal import RunFolder

METHODS = {"sft": ("sft", "tiny-sft"), "offline": ("grpo", "tiny-grpo"), "semi-online": ("semi-online", "tiny-semi-online")}
RESULTS = Path(__file__).with_suffix(".jsonl")
"""One line per evaluation of 600 episodes, and one with the lengths of the episodes."""
EPISODES = 600
"""Number of held-out episodes of an evaluation; ``--episodes`` changes it."""
START, SAMPLED = "start-sampled", "sampled"
ROLLED = 20
"""Optimiser steps at both ends of a training whose own answers are kept."""
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **os.environ}


def train(method: str, seed: int, out: Path, *, with_start: bool, episodes: int) -> None:
    """Run one training in a process of its own, or resume it. The initial weights are the same for every seed."""
    if (out / "final").is_dir():
        return
    command, config = METHODS[method]
    settings = [f"seed={seed}", f"evaluation.bench_options.episodes={episodes}", f"evaluation.at_start={with_start}".lower()]
    words = [sys.executable, "-m", "guieval", "train", command, "--config", config, "--out", str(out)]
    words += [word for setting in settings for word in ("--set", setting)]
    if (out / "checkpoints").is_dir() and any((out / "checkpoints").iterdir()):
        words.append("--resume")
    subprocess.run(words, check=True, env=ENVIRONMENT)


def sample(out: Path, episodes: int) -> None:
    """Evaluate the start, and what each training ended with, by answers drawn at temperature 1: what RL rewards."""
    words = [sys.executable, "-m", "guieval", "run", "--model", "tiny-policy", "--bench", "demo-icons", "--mode", "sop"]
    words += ["--engine", "transformers", "--set", f"bench_options.episodes={episodes}", "--set", "sampling.temperature=1.0"]
    weights = {out / START: None} | {final.parent / SAMPLED: final for final in sorted(out.glob("*-[0-9]*/final"))}
    for run, folder in weights.items():
        if not (run / "metrics.json").exists():
            chosen = [] if folder is None else ["--set", f"model_path={folder.resolve()}"]
            begun = ["--resume", str(run)] if run.exists() else [*words[4:], *chosen, "--out", str(run)]
            subprocess.run([*words[:4], *begun, "--quiet"], check=True, env=ENVIRONMENT)


def matched(run: Path) -> tuple[str, str]:
    """Of each planned episode the number of steps that matched before the first mismatch, and its length, a digit each."""
    answers = {record.task.key: record.sample.outcome.exact_match for record in RunFolder(run).records if record.finished}
    before, lengths = [], []
    for key, steps in RunFolder(run).plan.items():
        found = [answers.get((*key, index), False) for index in steps]
        before.append(next((number for number, exact in enumerate(found) if not exact), len(found)))
        lengths.append(len(steps))
    return "".join(map(str, before)), "".join(map(str, lengths))


def keep(out: Path, file: Path) -> None:
    """Add the evaluations of finished trainings to the results; those of one method, seed and step are replaced."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    kept: dict[tuple[Any, ...], dict[str, Any]] = {_name(line): line for line in lines}

    def add(run: Path, **line: Any) -> None:
        line["matched"], lengths = matched(run)
        if kept.setdefault((), {"lengths": lengths})["lengths"] != lengths:
            raise SystemExit(f"{run} evaluates other episodes than {file}")
        kept[_name(line)] = line

    for training in sorted(final.parent for final in out.glob("*-[0-9]*/final")):
        method, _, seed = training.name.rpartition("-")
        for run in sorted((training / "evaluations").iterdir(), key=lambda run: int(run.name.rpartition("-")[2])):
            step = int(run.name.rpartition("-")[2])
            own = {"trained_on": _own(training / "log.jsonl")} if step and method != "sft" else {}
            add(run, method=method if step else "start", seed=int(seed) if step else 0, step=step, **own)
        if (training / SAMPLED / "metrics.json").exists():
            last = max(line["step"] for line in kept.values() if line.get("method") == method)
            add(training / SAMPLED, method=method, seed=int(seed), step=last, temperature=1)
    if (out / START / "metrics.json").exists():
        add(out / START, method="start", seed=0, step=0, temperature=1)
    order = sorted(kept, key=lambda name: (bool(name), *map(str, name[:1]), *name[1:]))
    file.write_text("".join(json.dumps(kept[name]) + "\n" for name in order), encoding="utf-8")
    print(f"{len(kept) - 1} evaluations in {file}")


def _name(line: dict[str, Any]) -> tuple[Any, ...]:
    return () if "lengths" in line else (line["method"], line["seed"], line["step"], line.get("temperature", 0))


def _own(log: Path) -> list[float]:
    """Exact match of the answers that RL trained on: its first :data:`ROLLED` optimiser steps, and its last."""
    lines = [line for line in map(json.loads, log.read_text(encoding="utf-8").splitlines()) if "loss" in line]
    exact = [line[name] for line in lines for name in line if name.endswith("/exact_match")]
    return [round(fmean(exact[:ROLLED]), 4), round(fmean(exact[-ROLLED:]), 4)]


def main() -> None:
    """Train, or keep the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for method in METHODS:
        training = commands.add_parser(method)
        training.add_argument("--out", type=Path, required=True)
        training.add_argument("--seeds", type=int, nargs="+", required=True)
        training.add_argument("--episodes", type=int, default=EPISODES)
    sampling = commands.add_parser("sampled")
    sampling.add_argument("out", type=Path)
    sampling.add_argument("--episodes", type=int, default=EPISODES)
    keeping = commands.add_parser("keep")
    keeping.add_argument("out", type=Path)
    keeping.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.command == "keep":
        keep(arguments.out, arguments.results)
    elif arguments.command == "sampled":
        sample(arguments.out, arguments.episodes)
    else:
        for seed in arguments.seeds:
            begun = any(arguments.out.glob("*-[0-9]*/evaluations/step-0"))
            folder = arguments.out / f"{arguments.command}-{seed}"
            train(arguments.command, seed, folder, with_start=not begun, episodes=arguments.episodes)


if __name__ == "__main__":
    main()
