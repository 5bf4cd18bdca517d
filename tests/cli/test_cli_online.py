"""Commands on recorded steps, given an online run."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

from tests.command_line import CommandLine
from tests.reports.trajectories.made_online import online_run
from tests.rows import every_row


@every_row(
    ("command", "instead"),
    [
        (("audit", "{run}"), "audit a run of the model with --mode offline"),
        (("select", "{run}"), "select from runs with --mode offline"),
        (("consistency", "{run}", "--judges", "{run}"), "judge a run of the model with --mode offline"),
        (("decisions", "{run}"), "`guieval rollout`"),
        (("plot", "actions", "{run}", "--out", "{run}.pdf"), "`guieval report RUN`"),
    ],
)
def test_what_to_use_instead(command: tuple[str, ...], instead: str, tmp_path: Path, guieval: CommandLine) -> None:
    run = online_run(tmp_path, limit=2)
    done = guieval(*(part.format(run=run) for part in command))
    assert done.code == 2 and "is an online run, whose steps have no reference actions; " in done.err and instead in done.err


def test_the_other_runs_of_a_folder_are_taken(tmp_path: Path, guieval: CommandLine) -> None:
    shutil.move(online_run(tmp_path, limit=2), tmp_path / "both" / "online")
    agent = ("--adapter", tmp_path / "scripted.py", "--set", "engine=local", "--set", "bench_options.episodes=8")
    offline = guieval("run", "--model", "scripted", *agent, "--bench", "demo", "--limit", "1", "--out", tmp_path / "both" / "a")
    assert offline.code == 0, offline.err
    done = guieval("audit", tmp_path / "both", "--adapter", tmp_path / "scripted.py")
    assert "online' is left out: it is an online run" in done.err and done.out.count("finding:") == 1


def test_a_leaderboard_has_no_coverage_for_it(tmp_path: Path, guieval: CommandLine) -> None:
    run = online_run(tmp_path, limit=2)
    (ended,) = guieval("leaderboard", run, "--format", "md").out.split("### How steps ended")[1:]
    assert "| scripted | online | - |" in ended
    rows = csv.DictReader(guieval("leaderboard", run, "--format", "csv").out.splitlines())
    assert {row["coverage"] for row in rows} == {""}


def test_a_rollout_is_not_online(guieval: CommandLine) -> None:
    done = guieval("rollout", "--model", "ocr-baseline", "--bench", "demo", "--mode", "online", "--limit", "1")
    assert done.code == 2 and "`guieval run --mode online --samples N`" in done.err
