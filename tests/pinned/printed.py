"""What the commands print of the pinned runs: which commands, and how their output is written down as text.

``view`` and ``open`` in these lists are no command lines: they stand for all data that the viewer's pages ask its server for,
and for what :func:`guieval.open_run` gives a script. ``COLUMNS=80`` before a command is the terminal's width.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

import guieval
from guieval.journal import MANIFEST
from guieval.reports.opened import OpenedRun
from guieval.reports.server.app import ViewerApp
from guieval.reports.server.library import Library
from tests.pinned.folders import FOLDERS, Kind
from tests.pinned.place import PLAIN, Place

MODES = ("careful/offline", "careful/soeval", "careful/sop", "hasty/offline", "hasty/soeval", "hasty/sop")
PATCHED = ("thought-free", "on-policy", "off-policy")
WIDTHS = (80, 120)
"""The terminals that what people read first must fit, in :data:`MOST_LINES` lines."""
MOST_LINES = 60
JUDGES = "runs/judge-1,runs/judge-2,runs/judge-3"

COMMANDS: Mapping[str, Sequence[str]] = {
    "score": (
        "score runs/careful",
        "score runs/careful/offline --json",
        *(f"score runs/{mode}" for mode in MODES if mode.startswith("hasty")),
        "score runs/hasty/sop --json",
        "score runs/hasty/offline --protocol all",
        "score runs/hasty/offline --protocol osatlas --protocol ui-r1 --disagreements out/disagreements.csv",
        "score runs/hasty/sop --protocol ui-s1-sop --protocol osatlas",
        "score runs/hasty/offline --by action-type --by length --by step --by ratio --by subset --by error --by app",
        "score runs/hasty/offline --reparse --adapter agents.py --overlay overlay.jsonl",
        "score runs/careful/offline --episodes some.txt",
        "score runs/careful/offline --subset tools --json",
        "study power runs/careful/offline",
        "dev audit runs/careful/offline --adapter agents.py",
        "study select runs/hasty/offline --top 5 --out out/hard.txt --json",
        "open runs/hasty/offline",
        "view runs/careful/offline",
        "view runs/hasty/sop",
    ),
    "compare": (
        "compare runs/careful runs/hasty",
        "compare runs/careful/offline runs/hasty/offline --json",
        "compare runs/careful/offline runs/hasty/offline --format latex",
        "compare runs/careful/offline runs/hasty/offline --format csv",
        "compare runs/careful/sop runs/hasty/sop --protocol ui-s1-sop --flips out/flips.csv",
        "compare runs/careful/offline runs/careful/soeval --anyway",
        "leaderboard runs/careful runs/hasty runs/served-agentcpm runs/served-ui-tars",
        "leaderboard runs/careful/offline runs/hasty/offline runs/served-ui-tars --protocol osatlas --json",
        "leaderboard runs/careful runs/hasty --format csv --out out/leaderboard.csv",
        "leaderboard runs/careful runs/hasty --format latex --metrics 'exact match' --out out/leaderboard.tex",
        "study correlate runs/careful/offline runs/hasty/offline runs/served-agentcpm/offline runs/served-ui-tars"
        " --x 'IN_UNIFIED exact match' --y success --online online.csv",
        "plot actions runs/careful/offline runs/hasty/offline --label careful --label hasty --out out/a.svg --json",
        "plot horizon runs/careful/offline runs/hasty/offline --label careful --label hasty --out out/a.svg --json",
        "plot matrix runs/careful/offline --protocol osatlas --protocol ui-s1-sop --out out/a.svg --json",
        "view runs/careful/offline runs/hasty/offline",
        "runs list runs --json",
    ),
    "patches": (
        *(f"score runs/{name}" for name in PATCHED),
        "open runs/on-policy",
        "compare runs/hasty/sop runs/thought-free --anyway",
        "view runs/off-policy",
    ),
    "mixed": ("score runs/mixed", "leaderboard runs/mixed runs/careful/offline", "score runs/sweep/settings"),
    "samples": (
        "score runs/samples",
        "score runs/samples --json",
        "study decisions runs/samples",
        "study decisions runs/rollout-careful --against runs/rollout-hasty",
        "study decisions runs/rollout-careful --against runs/rollout-hasty --json",
        "study decisions runs/rollout-hasty --sensitivity",
        "score runs/rollout-hasty/seed-100",
        "plot samples runs/samples --out out/a.svg --json",
        "view runs/rollout-careful",
        f"study consistency runs/careful/offline --judges {JUDGES} --steps out/steps.csv",
        f"study consistency runs/careful/offline --judges {JUDGES} --json",
    ),
    "served": (
        "score runs/served-agentcpm",
        "compare runs/served-agentcpm/offline runs/served-ui-tars",
        "dev audit runs/served-agentcpm/offline",
        "plot pareto runs/served-agentcpm/offline runs/served-ui-tars --cost --out out/a.svg --json",
        "data export-results runs/served-agentcpm/offline --format hf-eval-results --dataset example/demo --out out",
        "data export-results runs/served-agentcpm/offline --format model-index --out out",
        "data export-results runs/served-agentcpm/soeval --format inspect --out out",
        "report runs/served-agentcpm/offline --no-images --out out",
        "view runs/served-agentcpm/soeval",
    ),
    "campaign": (
        "campaign campaign.yaml --out runs/campaign --dry-run",
        "compare runs/campaign/careful-episodes-sop-seed0 runs/campaign/hasty-episodes-sop-seed0",
        "data export-results runs/campaign/hasty-episodes-offline-seed1 --format every-eval-ever --out out",
        "report runs/campaign/hasty-episodes-sop-seed1 --against runs/campaign/careful-episodes-sop-seed1"
        " --adapter agents.py --no-images --out out",
    ),
    "phone": (
        "score runs/phone-careful",
        "score runs/phone-hasty --json",
        "compare runs/phone-careful runs/phone-hasty --anyway",
        "leaderboard runs/phone-careful runs/phone-hasty",
        "data record runs/phone-careful --out out/recorded",
        "report runs/phone-careful --no-images --out out",
        "data export-results runs/phone-hasty --format atif --out out",
        "open runs/phone-careful",
        "view runs/phone-careful",
        "view runs/phone-careful runs/phone-hasty",
    ),
    "pages": (
        "score runs/pages-careful",
        "score runs/pages-hasty --json",
        "compare runs/pages-careful runs/pages-hasty",
        "open runs/pages-hasty",
        "view runs/pages-careful",
    ),
    "training": (
        "plot training runs/training-grpo-0 runs/training-grpo-1 --out out/a.svg --json",
        "plot training runs/training-sft --out out/a.svg --json",
        "train evaluate runs/training-sft",
        "score runs/training-sft/evaluations/step-6",
        "compare runs/training-sft/evaluations/step-0 runs/training-sft/evaluations/step-6",
        "leaderboard runs/training-grpo-0/evaluations",
        "open runs/training-grpo-1/evaluations/step-3",
        "view runs/training-grpo-0/evaluations/step-6",
    ),
    "widths": tuple(
        f"COLUMNS={width} {command}"
        for command in (
            "campaign wide.yaml --quiet --out wide-{width}",
            "leaderboard runs/careful runs/hasty --format text",
            "compare runs/careful/offline runs/hasty/offline",
            "runs list runs/campaign",
        )
        for width in WIDTHS
    ),
}
"""What is printed, by the file that holds it."""

READABLE = (".csv", ".json", ".jsonl", ".js", ".md", ".tex", ".txt", ".yaml", ".eval")


SIGN = "$ guieval "
"""How the section of a command begins in a printed file."""


def read_printed(place: Place) -> Iterator[tuple[str, str]]:
    """Each printed file's name and text, but for those of resumed runs: for these nothing is asked and no browser needed."""
    for name, commands in COMMANDS.items():
        yield name, sectioned(place, commands)


def resumed_printed(place: Place, kind: Kind) -> str:
    """What resuming each folder of a kind prints. Steps that had failed are asked again, and fail again."""
    return sectioned(place, [folder.resumed for folder in FOLDERS.values() if folder.kind == kind])


def sectioned(place: Place, commands: Sequence[str]) -> str:
    """A section for each command."""
    return "\n".join(f"{SIGN}{command}\n{printed(place, command)}" for command in commands)


def printed(place: Place, command: str) -> str:
    """All that a command prints and writes, as the text that is pinned: its output, what it says beside it, its exit code
    unless that is 0, and the readable files that it writes below ``out``."""
    shutil.rmtree("out", ignore_errors=True)
    Path("out").mkdir()
    width, command = command.split(" ", 1) if command.startswith("COLUMNS=") else (f"COLUMNS={PLAIN}", command)
    os.environ["COLUMNS"] = width.removeprefix("COLUMNS=")
    kind, _, rest = command.partition(" ")
    if kind == "view":
        sections = [f"GET {name}\n{dense(value)}" for name, value in viewed(rest.split())]
    elif kind == "open":
        sections = list(opened(rest))
    else:
        done = place(command.replace("{width}", os.environ["COLUMNS"]))
        out = re.sub(r" +(age|\d+ (?:s|min|h|d))(?=  )|─+", " age", done.out) if kind == "runs" else done.out
        sections = [laid_out(out), *([f"stderr:\n{done.err}"] if done.err else [])]
        sections += [f"exit code {done.code}"] if done.code else []
        sections += [f"{path}:\n{content(path)}" for path in sorted(Path("out").rglob("*")) if path.suffix in READABLE]
    return settled("\n".join(section.rstrip() for section in sections if section.strip()), place.folder)


def settled(text: str, folder: Path) -> str:
    """A text without what differs from one place, day, version or processor to the next, and without trailing blanks.

    - the working folder, which commands print as an absolute path or as a file's address
    - the version of guieval that exports, and that which made the runs, in exported results; and the checksum of such a file
    - how long a command took
    - digits after the twelfth: Python 3.12 adds floats in another way than 3.11, and processors differ there too
    """
    for path in {str(folder), str(folder.resolve())}:
        text = text.replace(path, "<folder>")
    for version in {guieval.__version__, *recorded_versions(folder)}:
        text = re.sub(rf"(?<![\w.]){re.escape(version)}(?![\w.])", "<version>", text)
    text = re.sub(r'"checksum": "\w+"', '"checksum": "<checksum>"', text)
    text = re.sub(r"\"completed_at\": \"[^\"]*\"", '"completed_at": "<time>"', text)
    text = re.sub(r"^time:     about .*", "time:     about <time>", text, flags=re.M)  # from when files were written
    text = re.sub(r"^progress: [^\n]*: (?!100 %)[^\n]* elapsed\n", "", text, flags=re.M)  # of slow machines
    text = re.sub(r"\d+:\d\d elapsed", "<time> elapsed", text)
    return "\n".join(line.rstrip() for line in rounded(text).splitlines()) + "\n"


def recorded_versions(folder: Path) -> set[str]:
    """The versions of guieval that made the runs."""
    return {str(json.loads(file.read_bytes())["guieval"]) for file in (folder / "runs").rglob(MANIFEST)}


def rounded(text: str) -> str:
    """A text whose numbers have at most twelve digits after the zeros that they begin with."""
    return re.sub(r"(?<![\w.])\d+\.\d{11,}(e-?\d+)?(?![\w.])", lambda found: f"{float(found[0]):.12g}", text)


def laid_out(text: str) -> str:
    """JSON as :func:`dense` writes it, any other text as it is."""
    try:
        return dense(json.loads(text)) if text.lstrip()[:1] in ("{", "[") else text
    except ValueError:
        return text


def content(path: Path) -> str:
    """A file that a command wrote, as text."""
    match path.suffix:
        case ".eval":  # a zip archive
            with zipfile.ZipFile(path) as archive:
                return dense(json.loads(archive.read("header.json")))
        case ".jsonl":
            return "\n".join(dense(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines())
        case ".js" if path.parent.name == "data":  # a script that hands one text of JSON to the page
            inside = re.search(r"JSON\.parse\('(.*)'\)", path.read_text(encoding="utf-8"), re.DOTALL)
            assert inside is not None
            return dense(json.loads(inside[1].replace("\\\\", "\\")))
        case ".js":
            return ""
        case _:
            return laid_out(path.read_text(encoding="utf-8"))


def dense(value: Any, indent: str = "") -> str:
    """JSON with a line for each part that fits into one, so that a difference is a line and not a page."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + len(indent) <= 150 or not isinstance(value, dict | list):
        return line
    deeper = indent + " "
    if isinstance(value, dict):
        parts = [f"{json.dumps(name, ensure_ascii=False)}: {dense(part, deeper)}" for name, part in value.items()]
    else:
        parts = [dense(part, deeper) for part in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}{last}"


def viewed(runs: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Every part of the viewer's page of a run, or of the comparison of several, by its address."""
    app = ViewerApp(Library([Path(run) for run in runs]))
    # one id a run, made of its absolute path
    ids = [row["id"] for run in runs for row in Library([Path(run)]).listed()]

    async def asked(address: str) -> Any:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", cookies={"guieval": app.token}
        ) as client:
            return (await client.get(address)).json()

    page = f"/runs/{','.join(ids)}/data"
    head = asyncio.run(asked(f"{page}/head"))
    for name in ("head", *head["sections"]):
        found = dict(head) if name == "head" else asyncio.run(asked(f"{page}/{name}"))
        found.pop("stored", None)  # the cards of the metrics, which a folder of an earlier version has once it is resumed
        text = json.dumps(found)
        for run, number in zip(runs, ids, strict=True):
            text = text.replace(number, f"<id of {run}>")
        yield f"data/{name}", json.loads(text)


def opened(run: str) -> Iterator[str]:
    """The tables and figures of a run as a script gets them."""
    found = guieval.open_run(run)
    yield f"notes: {list(found.notes)}"
    yield str(found.metrics())
    if isinstance(found, OpenedRun):
        yield found.steps().drop(columns="seconds").to_csv()
        yield dense(guieval.evaluate_run(run).summary.model_dump(mode="json"))
    else:
        for task in found.tasks:
            yield str(task)
