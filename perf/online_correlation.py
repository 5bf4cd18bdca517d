"""Which figure of recorded steps predicts success online? Agents of known strength, each in all four modes on the same tasks.

Run it as ``python -m perf.online_correlation runs/correlation``; it may be stopped and started again. It writes tables into the
folder, for ``guieval study correlate --table`` and ``guieval plot reliability --table``: ``agents.yaml`` with all agents, and
``blind.yaml`` with those whose mistakes do not depend on the past that they see. With ``--environment miniwob``
the tasks are pages of MiniWoB++, and the references are an expert's demonstrations. With ``--trainings FOLDER`` the checkpoints
of the tiny policy in that folder are agents too (on the phone), and ``trained.yaml`` is a table of these alone.

The other agents are ``ocr-errant``. They know the right answer to the screens of the references (all, or a share), and
err in stated ways: slips, slips that depend on the own past that they see, habits, and what they do on a screen that is on no
reference: go home and begin again, go back, or guess by OCR.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

import guieval
from guieval.data.screenshots import read_screenshot
from guieval.online.demonstrate import demonstrate
from guieval.online.find import load_environment
from guieval.registry import load_benchmark

MODES = ("offline", "soeval", "sop", "online")
HOME: dict[str, Any] = {"off_path": "home"}
AGENTS: dict[str, dict[str, Any]] = {
    **{f"slips {slip:.0%}, begins again": {"slip": slip, **HOME} for slip in (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4)},
    **{f"slips {slip:.0%}, goes back": {"slip": slip, "off_path": "back"} for slip in (0.06, 0.15, 0.3)},
    **{f"slips {slip:.0%}, guesses on": {"slip": slip} for slip in (0.06, 0.15, 0.3)},
    **{f"slips {slip:.0%}, then lost": {"slip": slip, "after_slip": "lost", **HOME} for slip in (0.03, 0.06, 0.15)},
    **{f"repeats itself {habit:.0%}": {"slip": 0.03, "habit": habit, **HOME} for habit in (0.05, 0.1, 0.2, 0.3)},
    **{f"thrown off by its past {drift:.0%}": {"slip": 0.03, "drift": drift, **HOME} for drift in (0.05, 0.1, 0.2, 0.3)},
    **{
        f"slips {slip:.0%}, steadied by its past {drift:.0%}": {"slip": slip, "drift": drift, **HOME}
        for slip, drift in ((0.15, -0.1), (0.3, -0.25), (0.4, -0.3))
    },
    **{f"knows {knows:.0%}, guesses the rest": {"knows": knows} for knows in (0.9, 0.75, 0.5, 0.25)},
    "OCR baseline": {"knows": 0.0},
    **{f"OCR baseline, remembers {steps} steps": {"knows": 0.0, "memory": steps} for steps in (0, 2)},
    **{f"OCR baseline, reads {sight:.0%} of the lines": {"knows": 0.0, "sight": sight} for sight in (0.9, 0.75)},
    "OCR baseline, does not scroll": {"knows": 0.0, "scroll": False},
    "knows 75%, guesses the rest, remembers nothing": {"knows": 0.75, "memory": 0},
    **{f"slips 15%, begins again, seed {seed}": {"slip": 0.15, "seed": seed, **HOME} for seed in (1, 2)},
}
PAGE_AGENTS: dict[str, dict[str, Any]] = {
    **{f"slips {slip:.0%}": {"slip": slip} for slip in (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4)},
    **{f"slips {slip:.0%}, then lost": {"slip": slip, "after_slip": "lost"} for slip in (0.06, 0.15)},
    **{f"repeats itself {habit:.0%}": {"slip": 0.03, "habit": habit} for habit in (0.1, 0.2, 0.3)},
    **{f"thrown off by its past {drift:.0%}": {"slip": 0.03, "drift": drift} for drift in (0.1, 0.2, 0.3)},
    "slips 30%, steadied by its past 25%": {"slip": 0.3, "drift": -0.25},
    **{f"knows {knows:.0%}, guesses the rest": {"knows": knows} for knows in (0.75, 0.5, 0.25)},
    "OCR baseline": {"knows": 0.0},
    "OCR baseline, remembers nothing": {"knows": 0.0, "memory": 0},
    "OCR baseline, reads 75% of the lines": {"knows": 0.0, "sight": 0.75},
    "slips 15%, seed 1": {"slip": 0.15, "seed": 1},
}
"""A page has no home, so these agents guess on screens that they do not know."""
PAGES = (
    *(
        "click-checkboxes",
        "click-checkboxes-large",
        "click-checkboxes-soft",
        "click-collapsible-2",
        "click-option",
        "click-shades",
    ),
    *(
        "click-tab-2-hard",
        "copy-paste",
        "email-inbox",
        "email-inbox-forward",
        "email-inbox-reply",
        "enter-password",
        "enter-text",
    ),
    *("find-word", "form-sequence-2", "form-sequence-3", "login-user", "login-user-popup", "multi-orderings", "navigate-tree"),
    *("odd-or-even", "read-table-2", "search-engine", "social-media", "use-autocomplete", "choose-date-medium"),
)
"""Pages whose demonstrations take several steps, all of actions in the unified space (seed 0)."""
COLUMNS = (
    ("offline_tm", "offline TM", "type match of recorded steps, reference history, %", "offline"),
    ("offline_em", "offline EM", "exact match of recorded steps, reference history, %", "offline"),
    ("soeval_em", "SOEval EM", "exact match of recorded steps, own matched history, %", "soeval"),
    ("sop_pg", "SOP PG", "progress until the first mistake, patched, %", "sop"),
    ("sop_tsr", "SOP TSR", "episodes without a mistake, %", "sop"),
    ("online_progress", "online progress", "mean share of a task's goals that are reached, %", None),
    ("online", "online success", "tasks that the environment judges as done, %", None),
)


TRAININGS = {"tiny-phone-sft": "SFT", "tiny-phone-grpo": "GRPO", "tiny-phone-semi-online": "semi-online RL"}
"""Folders of trainings, and how their checkpoints are called."""
TEMPERATURES = (0.0, 1.0)


def trained(folder: Path) -> dict[str, dict[str, Any]]:
    """The settings of runs with each checkpoint in a folder of trainings: greedy, and at the end of each also sampled."""
    agents = {}
    for training, kind in TRAININGS.items():
        checkpoints = {int(each.name.rpartition("-")[2]): each for each in (folder / training).glob("checkpoints/checkpoint-*")}
        if not checkpoints:
            raise SystemExit(f"{str(folder / training)!r} has no checkpoint: guieval train ... --config {training}")
        options = yaml.safe_load((folder / training / "training.yaml").read_text(encoding="utf-8"))["model_options"]
        for step, weights in sorted(checkpoints.items()):
            for temperature in TEMPERATURES if step == max(checkpoints) else TEMPERATURES[:1]:
                agents[f"{kind}, step {step}" + (f", temperature {temperature:g}" if temperature else "")] = {
                    "model": "tiny-policy",
                    "engine": "transformers",
                    "model_path": str(weights.absolute()),
                    "options": options,
                    "sampling": {"temperature": temperature, "max_tokens": 64},
                }
    return agents


def phone(episodes: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of runs on recorded steps of the phone, and of runs on the phone."""
    settings = {"bench": "demo", "bench_options": {"episodes": episodes}}
    return settings, settings


def miniwob(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of runs on the expert's demonstrations in :data:`PAGES`, and of runs on the pages; records them first."""
    options: dict[str, Any] = {"scale": 2, "max_steps": 15}
    episodes = folder / "episodes"
    if not episodes.exists():
        making = folder / "episodes.tmp"
        shutil.rmtree(making, ignore_errors=True)
        made = demonstrate(load_environment("miniwob", **options), making, tasks=PAGES)
        if made.episodes < len(PAGES):
            raise SystemExit(f"the expert does not succeed in {', '.join(made.failed + made.unknown)}")
        making.rename(episodes)
    chosen = folder / "tasks.txt"
    chosen.write_text("".join(f"{page}\n" for page in PAGES), encoding="utf-8")
    acted = {"bench": "miniwob", "bench_options": options, "episodes": chosen, "environments": 3}
    return {"bench": "episodes", "data": episodes}, acted


def write_answers(file: Path, settings: dict[str, Any]) -> None:
    """The reference action for every recorded screen, as the agents know them."""
    errant = import_module("guieval.model_adapters.ocr_errant")
    loader = load_benchmark(settings["bench"], settings.get("data", file.parent / "data"), **settings.get("bench_options", {}))
    answers = {}
    for episode in loader:
        for step in episode.steps:
            screenshot = read_screenshot(loader.root, step.screenshot, step.screenshot_size).data
            answers[errant.key_of(step.instruction, screenshot)] = step.action.model_dump(mode="json")
    file.write_text(json.dumps(answers), encoding="utf-8")


def done(folder: Path, agent: dict[str, Any], recorded: dict[str, Any], acted: dict[str, Any]) -> list[Path]:
    """One agent's runs in :data:`MODES`, continued where they were stopped."""
    for out, mode, settings in ((folder / "recorded", MODES[:3], recorded), (folder / "online", MODES[3:], acted)):
        if out.exists():
            result = guieval.run(resume=out, progress=False)
        else:
            result = guieval.run(mode=mode, out=out, progress=False, **agent, **settings)
        if not result.complete:
            raise SystemExit(f"the runs in {str(out)!r} are not complete; start the command again")
    return [folder / "recorded" / mode for mode in MODES[:3]] + [folder / "online"]


def figures(runs: Sequence[Path]) -> Iterator[float | None]:
    """The values of :data:`COLUMNS`, in percent."""
    offline, soeval, sop, online = map(guieval.open_run, runs)
    recorded, own, patched, acted = offline.metrics(), soeval.metrics(), sop.metrics(), online.metrics()
    shares = (
        recorded["type match"].value,
        recorded["exact match"].value,
        own["exact match"].value,
        patched["progress"].value,
        patched["success rate"].value,
        acted["progress"].value,
        acted["success rate"].value,
    )
    return (None if share is None else round(100 * share, 3) for share in shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--environment", choices=("phone", "miniwob"), default="phone")
    parser.add_argument("--episodes", type=int, default=60, help="tasks of the phone")
    parser.add_argument("--trainings", type=Path, help="folder with the trainings of the tiny policy on the phone")
    arguments = parser.parse_args()
    if arguments.trainings is not None and arguments.environment != "phone":
        parser.error("--trainings are of the phone: leave out --environment")
    # the agents see the same screens, which are read once
    vars(import_module("guieval.model_adapters.ocr_baseline"))["REMEMBERED_SCREENS"] = 50_000
    arguments.folder.mkdir(parents=True, exist_ok=True)
    on_phone = arguments.environment == "phone"
    recorded, acted = phone(arguments.episodes) if on_phone else miniwob(arguments.folder.absolute())
    errant = AGENTS if on_phone else PAGE_AGENTS
    answers = arguments.folder.absolute() / "answers.json"
    if not answers.exists():
        write_answers(answers, recorded)
    agents = {
        name: {"model": "ocr-errant", "options": {"answers": str(answers), **options}} for name, options in errant.items()
    }
    policies = {} if arguments.trainings is None else trained(arguments.trainings)
    rows = []
    for name, agent in {**agents, **policies}.items():
        folder = arguments.folder / re.sub(r"\W+", "-", name)
        rows.append({"model": name, "values": list(figures(done(folder, agent, recorded, acted)))})
        print(name, *rows[-1]["values"], flush=True)
    write_table(arguments.folder / "agents.yaml", rows)
    blind = {name for name, options in errant.items() if not {"drift", "habit", "after_slip"} & options.keys()}
    write_table(arguments.folder / "blind.yaml", [row for row in rows if row["model"] in blind])
    if policies:
        write_table(arguments.folder / "trained.yaml", [row for row in rows if row["model"] in policies])


def write_table(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    """The agents' figures as a table of results."""
    columns = [
        {"name": name, "title": title, "metric": metric, "decimals": 2, **({"mode": mode} if mode else {})}
        for name, title, metric, mode in COLUMNS
    ]
    table = {
        "name": file.stem,
        "paper": "perf/online_correlation.py",
        "short": "own runs",
        "table": file.stem,
        "caption": f"{len(rows)} agents, offline and online",
        "columns": columns,
        "rows": list(rows),
    }
    file.write_text(yaml.safe_dump(table, sort_keys=False), encoding="utf-8")


if __name__ == "__main__":
    main()
