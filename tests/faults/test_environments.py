"""Environments of online runs that fail."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from guieval.journal import RunFolder
from guieval.online.demonstrate import demonstrate
from guieval.online.find import load_environment
from guieval.online.trajectory import SCREENS, TRAJECTORIES, read_trajectories
from guieval.registry import load_benchmark
from tests.faults.rows import Row, rows
from tests.faults.test_disks import no_file_beyond
from tests.faults.test_machines import listen
from tests.json_values import read_json
from tests.online.acting import Acting, below, browsers, left_of, signal_all, steps_recorded, wait_for_steps
from tests.online.devices import require_chromium
from tests.online.test_runs import figures_of, outcomes, reference, task_id
from tests.waiting import until

KILLS = max(1, int(os.environ.get("GUIEVAL_KILLS", "1")))
"""How often a run in a browser is killed; 20 in ``make kills``."""
PHONE_TASKS = 30
PAGES = ("click-test", "click-button", "enter-text", "focus-text")
WAIT = '{"type": "WAIT", "duration": 100}'
STOPPED = "the result so far and `resume: guieval run --resume`"


@pytest.fixture(scope="module")
def on_phone(tmp_path_factory: pytest.TempPathFactory) -> Acting:
    scripts = {task_id(number): reference(number) for number in range(PHONE_TASKS)}
    options = ("--bench", "demo", "--set", f"bench_options.episodes={PHONE_TASKS}")
    return Acting.made(tmp_path_factory.mktemp("phone"), scripts, *options)


@pytest.fixture(scope="module")
def on_pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acting]:
    """An agent that waits twice and then does as the expert, on four pages, two at once."""
    require_chromium("miniwob")
    folder = tmp_path_factory.mktemp("pages")
    demonstrate(load_environment("miniwob"), folder / "expert", tasks=PAGES)
    scripts = {
        episode.key.episode_id: [WAIT, WAIT, *(step.action.model_dump_json() for step in episode.steps)]
        for episode in load_benchmark("episodes", folder / "expert")
    }
    (folder / "pages.txt").write_text("\n".join(PAGES))
    options = ("--bench", "miniwob", "--episodes", str(folder / "pages.txt"), "--set", "environments=2")
    yield Acting.made(folder, scripts, *options)


@pytest.fixture(scope="module")
def clean(on_pages: Acting, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing disturbed: every task is a success."""
    out = tmp_path_factory.mktemp("clean") / "run"
    on_pages.run(out)
    assert {name: outcome.ended for name, outcome in outcomes(out).items()} == dict.fromkeys(PAGES, "success")
    return out


@rows(
    Row(
        "a disk that is full when an online run stores a step",
        "takes back the line that did not fit and stops",
        "one sentence: `trajectories.jsonl`, `every step before is kept, and`, and how to resume",
        1,
        {"limit": 60_000},
    ),
    Row(
        "a disk that is full when an online run stores a screenshot",
        "leaves no part of the file and stops",
        "one sentence: `.png`, `every step before is kept, and`, and how to resume",
        1,
        {"limit": 40_000},
    ),
)
def test_a_full_disk_keeps_every_step(on_phone: Acting, tmp_path: Path, row: Row) -> None:
    """The trajectories end with a whole line and no temporary file is left; with room again, the resume ends with every task
    done, and asks for no step again but those that were not stored."""
    run, before = tmp_path / "run", on_phone.asked()
    row.check_seen(on_phone.end(on_phone.start(run, before=no_file_beyond(row.server["limit"])), row.code))
    assert (run / TRAJECTORIES).read_bytes().endswith(b"\n") and not list((run / SCREENS).glob("*.tmp"))
    kept, asked = steps_recorded(run), on_phone.asked() - before
    assert 0 < kept <= asked <= kept + 4  # one for each device
    on_phone.run(run, resume=True)
    assert {outcome.ended for outcome in outcomes(run).values()} == {"success"} and len(outcomes(run)) == PHONE_TASKS
    assert on_phone.asked() - before - asked == sum(len(reference(number)) for number in range(PHONE_TASKS)) - kept


@rows(
    Row(
        "kill -9 of an online run, again and again",
        "repeats the recorded actions of each unfinished task and goes on from there",
        "as usual, from the resume",
    )
)
def test_kills_of_an_agent_that_solves_its_tasks(on_phone: Acting, tmp_path: Path, row: Row) -> None:
    """At random moments (20 in `make kills`) of one run whose agent solves thirty tasks: each is a success and counts once,
    every step is in the trajectories once, and the model is asked no step again but those that were not stored."""
    run, before, draw, killed = tmp_path / "run", on_phone.asked(), random.Random(3), 0
    steps = sum(len(reference(number)) for number in range(PHONE_TASKS))
    while killed < KILLS:
        more = draw.randint(1, steps // (KILLS + 2))
        moment = steps_recorded(run) + more
        with on_phone.held(after=more):
            process = on_phone.start(run, resume=killed > 0)
            until(partial(reached, process, run, moment), f"{moment} steps", every=0.002)
            process.kill()
            process.communicate()
        if process.returncode == 0:  # it was quicker than this test
            break
        killed += 1
    assert killed >= min(KILLS, 5)
    row.check_seen(on_phone.run(run, resume=True))
    assert {name: outcome.ended for name, outcome in outcomes(run).items()} == dict.fromkeys(on_phone_tasks(), "success")
    assert Counter(record.task.episode_id for record in RunFolder(run).records) == Counter(on_phone_tasks())
    taken = Counter((step.key.episode_id, step.index) for step in read_trajectories(run))
    assert {*taken.values()} == {1} and len(taken) == steps
    assert steps <= on_phone.asked() - before <= steps + 4 * killed  # one for each device
    figures = figures_of(run)
    assert (figures.success.count, figures.success.n) == (PHONE_TASKS, PHONE_TASKS)
    print(f"{killed} kills, {on_phone.asked() - before - steps} responses were not stored yet")


def reached(process: subprocess.Popen[str], run: Path, moment: int) -> bool:
    return process.poll() is not None or steps_recorded(run) >= moment


def on_phone_tasks() -> list[str]:
    return [task_id(number) for number in range(PHONE_TASKS)]


@rows(Row("Ctrl-C while pages are open", "closes them, writes the figures so far and exits", STOPPED, 130))
def test_an_interrupt_closes_the_browsers(on_pages: Acting, clean: Path, tmp_path: Path, row: Row) -> None:
    """No browser is left and no task counts as failed; the resume ends with the outcomes of a clean run."""
    with on_pages.held(after=3):
        process = on_pages.start(tmp_path / "run", before=listen)
        wait_for_steps(process, tmp_path / "run", 3)
        open_then = below(process)
        process.send_signal(signal.SIGINT)
    row.check_seen(on_pages.end(process, row.code))
    assert not left_of(open_then)
    assert all(record.finished for record in RunFolder(tmp_path / "run").records)
    on_pages.run(tmp_path / "run", resume=True)
    assert outcomes(tmp_path / "run") == outcomes(clean)


@rows(
    Row(
        "a browser that is killed in the middle of a task",
        "opens another one and attempts the task again; in a deterministic environment it repeats the recorded actions",
        "as usual",
    ),
    Row(
        "a page that hangs",
        "waits at most `environment_timeout` seconds for a step, then the same",
        "as usual",
        options=("--set", "environment_timeout=30"),  # more than a browser takes to start on a busy machine
    ),
)
def test_a_lost_browser_costs_nothing(on_pages: Acting, clean: Path, tmp_path: Path, row: Row) -> None:
    """Every browser is killed, or stopped, once; outcomes equal those of a clean run, the model is asked no step twice that
    was stored, and no browser is left."""
    before, asked_by_clean = on_pages.asked(), steps_recorded(clean)
    with on_pages.held(after=3):
        process = on_pages.start(tmp_path / "run", *row.options)
        wait_for_steps(process, tmp_path / "run", 3)
        lost = browsers(process)
        signal_all(lost, signal.SIGSTOP if "hangs" in row.fault else signal.SIGKILL)
    on_pages.end(process, row.code)
    assert not left_of(lost)
    assert outcomes(tmp_path / "run") == outcomes(clean)
    assert on_pages.asked() - before <= asked_by_clean + 2  # a reply to each device that was not stored yet


@rows(
    Row(
        "kill -9 of guieval while pages are open",
        "the browsers end with it; the resume repeats the recorded actions of each unfinished task and goes on from there",
        "as usual, from the resume",
    )
)
def test_a_kill_ends_the_browsers_and_the_resume_goes_on(on_pages: Acting, clean: Path, tmp_path: Path, row: Row) -> None:
    """At random moments (20 in `make kills`): no browser is left, outcomes equal those of a clean run, and the model is asked
    no step again but those that were not stored."""
    steps = steps_recorded(clean)
    for moment in random.Random(7).choices(range(1, steps), k=KILLS):
        run, before = tmp_path / f"killed{moment}-{random.random()}", on_pages.asked()
        with on_pages.held(after=moment):
            process = on_pages.start(run)
            wait_for_steps(process, run, moment)
            open_then = below(process)
            process.kill()
            process.communicate()
        assert not left_of(open_then)
        row.check_seen(on_pages.run(run, resume=True))
        assert outcomes(run) == outcomes(clean)
        assert steps <= on_pages.asked() - before <= steps + 2  # one for each device
        assert read_json((run / "metrics.json").read_text())["state"] == "finished"
