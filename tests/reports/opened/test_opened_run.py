"""Opening runs from Python: steps as a table, steps as pictures, figures, and what a notebook shows of them."""

from __future__ import annotations

import builtins
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from guieval import open_run
from guieval.actions import Point, Scroll, Type
from guieval.errors import GuievalError, ScreenshotError, UsageError
from guieval.journal import MANIFEST, STEPS
from guieval.reports.marks import BLUE, ORANGE
from guieval.reports.opened import OpenedRun
from guieval.steps import EpisodeKey, StepRecord
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY
from tests.kernels import html_of
from tests.reports.scripted_runs import edited
from tests.reports.viewer.made_run import at, failed, record, task, write_run

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


@pytest.fixture(scope="module")
def frames() -> Any:
    return pytest.importorskip("pandas")


def scripted(guieval: CommandLine, out: Path, *modes: str) -> Path:
    """A run of an agent that taps where the task's words decide."""
    agent: list[str | Path] = ["--adapter", REPOSITORY / "tests" / "scripted_agents.py", "--set", "engine=local"]
    agent += [part for mode in modes for part in ("--mode", mode)]
    done = guieval("run", "--model", "scripted-hash", *agent, "--bench", "demo", "--limit", "4", "--out", out)
    assert done.code == 0, done.err
    return out


def drawn(folder: Path, *names: str) -> Path:
    """A data folder with grey screenshots of 300 x 600 pixels."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (300, 600), "#808080").save(folder / name)
    return folder


def offline_run(path: Path | str, **more: Any) -> OpenedRun:
    run = open_run(path, **more)
    assert isinstance(run, OpenedRun)
    return run


def opened(folder: Path, records: Sequence[StepRecord], **more: Any) -> OpenedRun:
    """A made run over screenshots that are drawn for it."""
    names = {one.task.screenshot for one in records}
    data = drawn(folder / "data", *names)
    return offline_run(write_run(folder / "run", records, **more), data=data)


def near(pixel: Any, colour: tuple[int, ...]) -> bool:
    return bool(max(abs(one - other) for one, other in zip(pixel[:3], colour[:3], strict=True)) <= 12)


def test_figures_and_rows_agree(guieval: CommandLine, tmp_path: Path, frames: Any) -> None:
    run = offline_run(scripted(guieval, tmp_path / "run"))
    for protocol in ("guievalkit", "osatlas"):
        assert run.steps(protocol).exact_match.mean() == pytest.approx(run.metrics(protocol)["exact match"].value)
    metrics = run.metrics()
    assert str(metrics).count("\n") == len(metrics)
    with pytest.raises(UsageError, match="did you mean 'exact match'"):
        metrics["exact mach"]
    table = metrics.to_pandas()
    assert table.loc["exact match", "n"] == len(run) and table.loc["exact match", "low"] <= table.loc["exact match", "value"]


def test_what_an_episode_that_stopped_never_reached(tmp_path: Path, frames: Any) -> None:
    records = [record(task(), at(1, 1)), record(task(step=1), at(500, 500)), record(task("e2"), at(500, 500))]
    steps = opened(tmp_path, records, stop="first-mismatch").steps()
    assert list(steps.verdict) == ["wrong", "not_reached", "not_reached", "right", "not_run", "not_run"]
    assert list(steps.exact_match.isna()) == [False, True, True, False, True, True]
    assert steps.raw_response.notna().sum() == 3


def test_a_row_for_each_sample_and_for_each_failure(tmp_path: Path, frames: Any) -> None:
    run = opened(tmp_path, [record(task(), at(500, 500), None, at(1, 1)), failed(task(step=1))])
    steps = run.steps()
    assert list(steps.index) == [0, 0, 0, 1, 2] and list(steps["sample"][:4]) == [0, 1, 2, 0]
    assert list(steps.verdict) == ["right", "unparseable", "wrong", "infrastructure_failure", "not_run"]
    assert steps.failure[1] == "generate: the server is gone"
    assert run.step(0).texts(2)["verdict"] == "wrong" and run.step(0).outcomes[0].exact_match


def test_the_marks_lie_where_the_thousandths_say(tmp_path: Path) -> None:
    one = task(action=at(300, 300), targets=[[200, 600, 800, 700]], length=1)
    image = opened(tmp_path, [record(one, at(700, 200))]).step(0).image()
    assert image.size == (300, 600)
    # rings of 10 pixels about (90, 180) and a diamond of 11 about (210, 120), their middles filled
    assert all(near(image.getpixel(place), BLUE) for place in ((90, 180), (80, 180), (100, 180), (90, 170), (90, 190)))
    assert all(near(image.getpixel(place), ORANGE) for place in ((210, 120), (200, 120), (220, 120), (210, 110)))
    assert near(image.getpixel((150, 360)), (31, 120, 180)), "the upper side of the box"
    plain = opened(tmp_path / "plain", [record(one, at(700, 200))]).step(0).image(boxes=False)
    assert near(plain.getpixel((150, 360)), (128, 128, 128))
    assert near(image.getpixel((5, 5)), (128, 128, 128)), "what has no mark stays as it is"


def test_areas_are_the_protocols_a_scroll_is_an_arrow_and_far_marks_are_no_failure(tmp_path: Path) -> None:
    one = task(targets=[[400, 450, 600, 550]], length=1)
    run = opened(tmp_path, [record(one, Type(text="tea"))])
    around = run.step(0, protocol="guievalkit").image(boxes=False)
    inside = run.step(0, protocol="ui-s1-sop").image(boxes=False)
    place = (150, 240)  # above the box, and less than 0.14 of the screen from the reference
    assert near(inside.getpixel(place), (128, 128, 128)) and not near(around.getpixel(place), (128, 128, 128))
    one = task(action=Scroll(point=Point(500, 500), direction="up"), length=1)
    image = opened(tmp_path / "scroll", [record(one, Type(text="tea"))]).step(0).image()
    assert near(image.getpixel((150, 200)), BLUE) and not near(image.getpixel((150, 450)), BLUE)
    one = task(targets=[[-1e300, 0, 1e300, 1000], [5, 5, 5, 5]], alternatives=[at(0, 0), at(1000, 1000)], length=1)
    assert opened(tmp_path / "far", [record(one, at(0, 1000))]).step(0).image().size == (300, 600)


def test_steps_by_number_and_by_episode(tmp_path: Path) -> None:
    records = [record(task(step=step), at(500, 500)) for step in range(3)] + [record(task("e2", 1), at(1, 1))]
    plan = {EpisodeKey("demo", "", "e1"): range(3), EpisodeKey("demo", "", "e2"): (1,), EpisodeKey("demo", "x", "e2"): (0, 2)}
    run = opened(tmp_path, records, plan=plan)
    steps = [(run.step(number).key.episode_id, run.step(number).index) for number in range(len(run))]
    assert steps == [("e1", 0), ("e1", 1), ("e1", 2), ("e2", 1), ("e2", 0), ("e2", 2)]
    assert run.step("e1", 2).number == 2 and run.step("e2", 2, subset="x").number == 5
    mistakes: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((6,), {}, "there is no step 6: the run has 6 steps, counted from 0"),
        ((0, 1), {}, "give a step's number alone"),
        (("e3", 0), {}, "no episode 'e3'"),
        (("e2", 1), {}, "several subsets have the episode 'e2': add subset, one of '', 'x'"),
        (("e1", 3), {}, "no step 3 in this run; its steps are 0 to 2"),
        ((0,), {"protocol": "osatlass"}, "did you mean 'osatlas'"),
    ]
    for arguments, more, sentence in mistakes:
        with pytest.raises(UsageError, match=sentence):
            run.step(*arguments, **more)
    with pytest.raises(UsageError, match="no sample 1: the step has 1"):
        run.step(0).image(1)
    with pytest.raises(UsageError, match="it was not run"):
        run.step(4).image()


def test_a_folder_of_several_runs_names_them(guieval: CommandLine, tmp_path: Path) -> None:
    scripted(guieval, tmp_path / "runs", "offline", "soeval")
    with pytest.raises(UsageError, match=r"below it are the runs .*offline.*soeval"):
        open_run(tmp_path / "runs")
    (one,) = [path for path in (tmp_path / "runs").iterdir() if path.name.endswith("offline")]
    assert offline_run(str(one)).manifest.mode.name == "offline"
    with pytest.raises(UsageError, match=r"the run directory .* does not exist"):
        open_run(tmp_path / "nothing")


def test_a_rollout_is_opened_with_the_samples_of_its_rounds(tmp_path: Path, frames: Any) -> None:
    from guieval.journal import ROLLOUT

    for number in range(2):
        write_run(tmp_path / f"round-{number}", [record(task(length=1), at(500, 500), at(number, 1))])
    rounds = [{"directory": f"round-{number}", "seed": number} for number in range(2)]
    (tmp_path / ROLLOUT).write_text(json.dumps({"schema": 1, "rounds": rounds}))
    run = offline_run(tmp_path)
    assert list(run.steps()["sample"]) == [0, 1, 2, 3] and "rounds" in html_of(run)
    with pytest.raises(UsageError, match=r"open one of its rounds '.*round-0', '.*round-1'"):
        run.metrics()


def test_opening_prints_nothing_and_logs_what_is_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    directory = write_run(tmp_path, [record(task(length=1), at(500, 500))])
    with (directory / STEPS).open("a") as journal:
        journal.write("{}\n")
    with caplog.at_level(logging.WARNING, "guieval"):
        run = offline_run(directory)
    assert "Skipped: 1 line of the journal that cannot be read" in caplog.text and len(run.notes) == 1
    run.metrics()
    assert capsys.readouterr() == ("", "")


def test_opening_runs_nothing_that_a_folder_names(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", [record(task(length=1), at(500, 500))])
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with edited(directory / MANIFEST) as manifest:
        manifest["model"]["adapter"] = str(trap)
        manifest["config"] = {"adapter": str(trap), "bench": str(trap)}
    run = offline_run(directory)
    assert html_of(run) and html_of(run.step(0)) and run.metrics()
    with pytest.raises(UsageError, match="unknown benchmark"):
        run.step(0).image()
    assert not (tmp_path / "ran").exists()


def test_screenshots_that_are_not_to_be_had(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", [record(task(length=1, screenshot="../../secret.png"), at(500, 500))])
    drawn(tmp_path, "secret.png")
    with pytest.raises(ScreenshotError, match="leads out of its folder"):
        offline_run(directory, data=tmp_path / "run" / "deeper").step(0).image()
    with pytest.raises(GuievalError, match="leads out of its folder"):
        offline_run(directory).step(0).image()
    assert "leads out of its folder" in html_of(offline_run(directory).step(0))


def test_no_text_of_a_model_or_a_data_set_is_markup(tmp_path: Path) -> None:
    one = task(f"e{HOSTILE}", length=1, instruction=HOSTILE, groups={HOSTILE: HOSTILE}, screenshot="s.png")
    run = opened(tmp_path, [record(one, Type(text=HOSTILE), raw=HOSTILE + "\u202e\x1b[2J")], model=HOSTILE)
    pages = [html_of(run), html_of(run.step(0)), html_of(run.metrics())]
    assert all("<script" not in page and "<img src=x" not in page and "\x1b" not in page for page in pages)
    assert "\u202e" not in pages[1] and pages[1].count("&lt;script&gt;") >= 4 and "data:image/jpeg;base64," in pages[1]
    assert "&lt;script&gt;" in pages[0] and "&lt;script&gt;" in pages[2]


def test_a_run_that_has_just_begun_opens(tmp_path: Path, frames: Any) -> None:
    run = offline_run(write_run(tmp_path, [], plan={EpisodeKey("demo", "", "e1"): range(3)}))
    assert list(run.steps().verdict) == ["not_run"] * 3 and run.metrics().summary.verdicts.not_run == 3
    assert "not_run" in html_of(run.step(1)) and html_of(run)


def test_without_pandas_there_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *more)

    run = offline_run(write_run(tmp_path, [record(task(length=1), at(500, 500))]))
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r"pip install 'guieval\[pandas\]'"):
        run.steps()
