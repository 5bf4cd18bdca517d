"""Which figure of recorded steps predicts success online? Agents of known strength, each in all modes on the same tasks.

Run it as ``python -m perf.online_correlation runs/correlation``; it may be stopped and started again. It writes tables into the
folder, for ``guieval study correlate --table`` and ``guieval plot reliability --table``: ``agents.yaml`` with all agents, and
``blind.yaml`` with those whose mistakes do not depend on the past that they see. With ``--errors`` the agents are those of
:data:`ERRORS`, and ``fatal.yaml`` has those whose errors a task cannot forgive. With ``--environment miniwob``
the tasks are pages of MiniWoB++, and the references are an expert's demonstrations; with ``--environment icons`` they are
the drawn icons of ``demo-icons``, where a tap on a wrong icon ends a task. With ``--graph`` a graph of them is recorded too,
and each agent acts in it. With ``--trainings FOLDER`` the checkpoints
of the tiny policy in that folder are agents too (on the phone), and ``trained.yaml`` is a table of these alone.

Agents of one family differ in a number only, so intervals are over families (``family`` in the tables). Success is defined by
the same references that the agents know, so no number here is of a model that never saw them.

The other agents are ``ocr-errant``. They know the right answer to the screens of the references (all, or a share), and
err in stated ways: slips, slips that depend on the own past that they see, habits, and what they do on a screen that is on no
reference: go home and begin again, go back, or guess by OCR.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

import guieval
from guieval.data.screenshots import read_screenshot
from guieval.graphs.recording import RecordedGraphsCount, record_graphs
from guieval.online.demonstrate import demonstrate
from guieval.online.find import load_environment
from guieval.registry import load_benchmark

RECORDED = ("offline", "soeval", "sop")
HOME: dict[str, Any] = {"off_path": "home"}
Recorder = Callable[..., Any]
Family = dict[str, dict[str, Any]]
"""Agents that differ in one number only, by their names."""
AGENTS: dict[str, Family] = {
    "slips, begins again": {
        **{f"slips {slip:.0%}, begins again": {"slip": slip, **HOME} for slip in (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4)},
        **{f"slips 15%, begins again, seed {seed}": {"slip": 0.15, "seed": seed, **HOME} for seed in (1, 2)},
    },
    "slips, goes back": {f"slips {slip:.0%}, goes back": {"slip": slip, "off_path": "back"} for slip in (0.06, 0.15, 0.3)},
    "slips, guesses on": {f"slips {slip:.0%}, guesses on": {"slip": slip} for slip in (0.06, 0.15, 0.3)},
    "slips, then lost": {
        f"slips {slip:.0%}, then lost": {"slip": slip, "after_slip": "lost", **HOME} for slip in (0.03, 0.06, 0.15)
    },
    "repeats itself": {
        f"repeats itself {habit:.0%}": {"slip": 0.03, "habit": habit, **HOME} for habit in (0.05, 0.1, 0.2, 0.3)
    },
    "thrown off": {
        f"thrown off by its past {drift:.0%}": {"slip": 0.03, "drift": drift, **HOME} for drift in (0.05, 0.1, 0.2, 0.3)
    },
    "steadied": {
        f"slips {slip:.0%}, steadied by its past {drift:.0%}": {"slip": slip, "drift": drift, **HOME}
        for slip, drift in ((0.15, -0.1), (0.3, -0.25), (0.4, -0.3))
    },
    "knows a share": {
        **{f"knows {knows:.0%}, guesses the rest": {"knows": knows} for knows in (0.9, 0.75, 0.5, 0.25)},
        "knows 75%, guesses the rest, remembers nothing": {"knows": 0.75, "memory": 0},
    },
    "OCR baseline": {
        "OCR baseline": {"knows": 0.0},
        **{f"OCR baseline, remembers {steps} steps": {"knows": 0.0, "memory": steps} for steps in (0, 2)},
        **{f"OCR baseline, reads {sight:.0%} of the lines": {"knows": 0.0, "sight": sight} for sight in (0.9, 0.75)},
        "OCR baseline, does not scroll": {"knows": 0.0, "scroll": False},
    },
}
PAGE_AGENTS: dict[str, Family] = {
    "slips": {
        **{f"slips {slip:.0%}": {"slip": slip} for slip in (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4)},
        "slips 15%, seed 1": {"slip": 0.15, "seed": 1},
    },
    "slips, then lost": {f"slips {slip:.0%}, then lost": {"slip": slip, "after_slip": "lost"} for slip in (0.06, 0.15)},
    "repeats itself": {f"repeats itself {habit:.0%}": {"slip": 0.03, "habit": habit} for habit in (0.1, 0.2, 0.3)},
    "thrown off": {f"thrown off by its past {drift:.0%}": {"slip": 0.03, "drift": drift} for drift in (0.1, 0.2, 0.3)},
    "steadied": {"slips 30%, steadied by its past 25%": {"slip": 0.3, "drift": -0.25}},
    "knows a share": {f"knows {knows:.0%}, guesses the rest": {"knows": knows} for knows in (0.75, 0.5, 0.25)},
    "OCR baseline": {
        "OCR baseline": {"knows": 0.0},
        "OCR baseline, remembers nothing": {"knows": 0.0, "memory": 0},
        "OCR baseline, reads 75% of the lines": {"knows": 0.0, "sight": 0.75},
    },
}
"""A page has no home, so these agents guess on screens that they do not know."""


def _errors(error: str, title: str, *rates: float) -> Family:
    return {title.format(f"{rate:.0%}"): {"error": error, "rate": rate} for rate in rates}


ERRORS: dict[str, dict[str, Family]] = {
    "no-op": {
        "wait": _errors("wait", "{} useless waits", 0.1, 0.3),
        "empty tap": _errors("empty-tap", "{} taps on nothing", 0.3),
    },
    "repairable": {
        "long press": _errors("long-press", "long press for {} of the clicks", 0.1, 0.3),
        "swipe": _errors("scroll", "{} useless swipes", 0.3),
        "back": _errors("back", "{} BACK", 0.1, 0.3),
        "wrong first click": _errors("first-click", "wrong first click in {} of the tasks", 0.7),
        "random tap": _errors("random-tap", "{} taps at random", 0.05, 0.15),
    },
    "fatal": {
        "typo": _errors("typo", "a letter twice in {} of the texts", 0.3, 1.0),
        "prose": _errors("unparseable", "{} responses in prose", 0.03, 0.1),
    },
    "stop": {
        "finishes early": _errors("finish", "{} finished too early", 0.05, 0.15),
        "gives up": _errors("impossible", "{} given up", 0.1),
        "never finishes": _errors("never-finish", "never finishes {} of the tasks", 0.3, 1.0),
    },
    "task": {"not understood": _errors("not-understood", "{} of the tasks not understood", 0.1, 0.25)},
    "accepted offline": {"noise": {f"clicks off by {sigma} of 1000": {"noise": sigma} for sigma in (20, 40)}},
}
"""24 agents with 14 other kinds of error, by what the error does to a task; on pages BACK does nothing."""
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
    ("retry_pg", "SOP-retry PG", "progress until a screen is wrong in 3 tries, %", "sop-retry"),
    ("retry_tsr", "SOP-retry TSR", "episodes in which every screen is right in 3 tries, %", "sop-retry"),
    ("online_progress", "online progress", "mean share of a task's goals that are reached, %", None),
    ("graph", "graph success", "tasks that are done in a graph of recorded screens, %", "graph"),
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


def drawn(bench: str, episodes: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of runs on recorded steps of the phone or of the icons, and of runs on them."""
    settings = {"bench": bench, "bench_options": {"episodes": episodes}}
    return settings, settings


def miniwob(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of runs on the expert's demonstrations in :data:`PAGES`, and of runs on the pages; records them first."""
    options: dict[str, Any] = {"scale": 2, "max_steps": 15}
    chosen = folder / "tasks.txt"
    chosen.write_text("".join(f"{page}\n" for page in PAGES), encoding="utf-8")
    acted = {"bench": "miniwob", "bench_options": options, "episodes": chosen, "environments": 3}
    return recorded(folder / "episodes", acted, demonstrate, PAGES), acted


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


def recorded(folder: Path, acted: dict[str, Any], record: Recorder, tasks: Sequence[str] | None = None) -> dict[str, Any]:
    """The settings of runs on what is recorded of an environment, in a folder; records it first."""
    if not folder.exists():
        making = folder.with_suffix(".tmp")
        made = record(load_environment(acted["bench"], **acted["bench_options"]), making, tasks=tasks)
        demonstrations = made.demonstrations if isinstance(made, RecordedGraphsCount) else made
        if tasks is not None and demonstrations.episodes < len(tasks):
            raise SystemExit(f"the expert does not succeed in {', '.join(demonstrations.failed + demonstrations.unknown)}")
        making.rename(folder)
    return {"bench": "episodes", "data": folder}


def done(
    folder: Path, agent: dict[str, Any], steps: dict[str, Any], acted: dict[str, Any], graph: dict[str, Any] | None
) -> list[Path]:
    """One agent's runs in the modes over steps, online and, if wanted, in a graph, continued where they were stopped."""
    parts = [("recorded", RECORDED, steps), ("retry", ("sop-retry",), steps), ("online", ("online",), acted)]
    parts += [] if graph is None else [("graph", ("graph",), graph)]
    for out, mode, settings in ((folder / name, modes, of) for name, modes, of in parts):
        if out.exists():
            result = guieval.run(resume=out, progress=False)
        else:
            result = guieval.run(mode=mode, out=out, progress=False, **agent, **settings)
        if not result.complete:
            raise SystemExit(f"the runs in {str(out)!r} are not complete; start the command again")
    return [*(folder / "recorded" / mode for mode in RECORDED), folder / "retry", folder / "online", folder / "graph"]


def figures(runs: Sequence[Path]) -> Iterator[float | None]:
    """The values of :data:`COLUMNS`, in percent."""
    *of_modes, walks = runs
    recorded, own, patched, retried, acted = (guieval.open_run(run).metrics() for run in of_modes)
    walked = guieval.open_run(walks).metrics()["success rate"].value if walks.exists() else None
    shares = (
        recorded["type match"].value,
        recorded["exact match"].value,
        own["exact match"].value,
        patched["progress"].value,
        patched["success rate"].value,
        retried["progress"].value,
        retried["success rate"].value,
        acted["progress"].value,
        walked,
        acted["success rate"].value,
    )
    return (None if share is None else round(100 * share, 3) for share in shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--environment", choices=("phone", "miniwob", "icons"), default="phone")
    parser.add_argument("--episodes", type=int, default=60, help="tasks of the phone, or of the icons")
    parser.add_argument("--errors", action="store_true", help="24 agents with 14 other kinds of error")
    parser.add_argument("--graph", action="store_true", help="act in a recorded graph of the environment too")
    parser.add_argument("--trainings", type=Path, help="folder with the trainings of the tiny policy on the phone")
    arguments = parser.parse_args()
    if arguments.trainings is not None and (arguments.environment != "phone" or arguments.errors):
        parser.error("--trainings are of the phone's other agents: leave out --environment and --errors")
    # the agents see the same screens, which are read once
    vars(import_module("guieval.model_adapters.ocr_baseline"))["REMEMBERED_SCREENS"] = 50_000
    arguments.folder.mkdir(parents=True, exist_ok=True)
    on_phone = arguments.environment == "phone"
    pages = arguments.environment == "miniwob"
    if pages:
        steps, acted = miniwob(arguments.folder.absolute())
    else:
        steps, acted = drawn("demo" if on_phone else "demo-icons", arguments.episodes)
    graphs = arguments.folder.absolute() / "graph"
    graph = recorded(graphs, acted, record_graphs, PAGES if pages else None) if arguments.graph else None
    families = AGENTS if on_phone else PAGE_AGENTS
    if arguments.errors:
        families = {family: agents for of_kind in ERRORS.values() for family, agents in of_kind.items()}
    answers = arguments.folder.absolute() / "answers.json"
    if not answers.exists():
        write_answers(answers, steps)
    common = {"answers": str(answers), **(HOME if arguments.errors and on_phone else {})}
    agents = {
        name: (family, {"model": "ocr-errant", "options": {**common, **options}})
        for family, of_family in families.items()
        for name, options in of_family.items()
    }
    policies = {} if arguments.trainings is None else trained(arguments.trainings)
    agents |= {name: ("checkpoints", policy) for name, policy in policies.items()}
    rows = []
    for name, (family, agent) in agents.items():
        folder = arguments.folder / re.sub(r"\W+", "-", name)
        values = list(figures(done(folder, agent, steps, acted, graph)))
        rows.append({"model": name, "family": family, "values": values})
        print(name, *values, flush=True)
    write_table(arguments.folder / "agents.yaml", rows)
    if arguments.errors:
        forgiven = {*ERRORS["no-op"], *ERRORS["repairable"]}
        write_table(arguments.folder / "fatal.yaml", [row for row in rows if row["family"] not in forgiven])
        return
    reacting = {"repeats itself", "thrown off", "steadied", "slips, then lost", "checkpoints"}
    write_table(arguments.folder / "blind.yaml", [row for row in rows if row["family"] not in reacting])
    if policies:
        write_table(arguments.folder / "trained.yaml", [row for row in rows if row["family"] == "checkpoints"])


def write_table(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    """The agents' figures as a table of results."""
    columns = [
        {"name": name, "title": title, "meaning": meaning, "decimals": 2, **({"mode": mode} if mode else {})}
        for name, title, meaning, mode in COLUMNS
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
