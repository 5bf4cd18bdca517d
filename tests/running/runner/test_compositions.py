"""Zoom-in and planner + grounder: where a place is, what is kept, counted and read again, and what a kill leaves."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Click, Point, Stop, Type
from guieval.data.orientations import stored
from guieval.data.screenshots import Crop, picture, read_screenshot
from guieval.errors import FatalEngineError, ParseError, UsageError
from guieval.frames import Size
from guieval.history import HistoryEntry
from guieval.journal import STEPS, RunFolder
from guieval.models import ModelConfig, Request, composition
from guieval.models.composition import Composition, StageResponse, composed, stages_in, written
from guieval.models.scaffold import Scaffold
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark, load_model
from guieval.steps import Usage
from tests.command_line import CommandLine
from tests.rows import every_row
from tests.running.scripted_runs import scripted_runner
from tests.scripted import ScriptedEngine, ScriptedModel, make_episode, reply_with

NAMES = ("qwen3-vl-8b-instruct", "uground-v1-7b")
BOTH = "planner={},grounder={}".format(*NAMES)
USAGE = Usage(prompt_tokens=100, completion_tokens=10)
HERE = Click(point=Point(500.0, 750.0))


@every_row(
    ("size", "point", "factor", "crop", "found", "place"),
    [
        ((1080, 2400), (500, 750), 2, (270, 1200, 810, 2400), (250, 100), (375, 550)),  # x 270 + 135, y 1200 + 120
        ((1920, 1080), (250, 500), 2, (0, 270, 960, 810), (1000, 0), (500, 250)),  # x 960, y 270
        ((1920, 1080), (1000, 1000), 2, (960, 540, 1920, 1080), (500, 500), (750, 750)),
        ((100, 60), (0, 0), 4, (0, 0, 25, 15), (1000, 1000), (250, 250)),
        ((1001, 333), (500, 500), 2, (250, 84, 750, 250), (0, 0), (250_000 / 1001, 84_000 / 333)),
        ((3, 3), (500, 500), 10, (1, 1, 2, 2), (500, 500), (500, 500)),
    ],
)
def test_a_part_is_within_the_screen_and_its_places_are_those_of_the_screen(
    size: Size, point: tuple[float, float], factor: float, crop: Crop, found: tuple[float, float], place: tuple[float, float]
) -> None:
    assert composition.zoomed_part(size, Point(*point), factor) == crop
    assert composition.on_the_screen(size, crop, Point(*found)) == pytest.approx(place)
    assert composition.on_the_part(size, crop, Point(*place)) == pytest.approx(found)


def test_a_part_is_cut_from_the_picture_as_it_is_turned(tmp_path: Path) -> None:
    import PIL.Image

    screen = PIL.Image.new("RGB", (40, 20))
    screen.paste((255, 0, 0), (20, 0, 40, 10))  # the upper right quarter
    (tmp_path / "s.png").write_bytes(stored(screen, 6))
    for resize, size in ((None, (40, 20)), ((8, 4), (8, 4))):
        shown = picture(read_screenshot(tmp_path, "s.png", (40, 20), resize, crop=(20, 0, 40, 10)).data)
        assert (shown.size, shown.getcolors()) == (size, [(size[0] * size[1], (255, 0, 0))])


def scripted(zoom: float | None = None, grounder: bool = False) -> Composition:
    scaffold = Scaffold(name="own", options={"zoom": zoom})
    model = composed(ScriptedModel)(ModelConfig(name="scripted", adapter="scripted", scaffold=scaffold, options={"zoom": zoom}))
    model.grounder = ScriptedModel(ModelConfig(name="pointer", adapter="scripted")) if grounder else None
    return model


def said(stage: str, action: Any, *, thought: str | None = "the red one", **more: Any) -> StageResponse:
    text = action if isinstance(action, str) else reply_with(action, thought)
    return StageResponse(stage=stage, model="m", text=text, **more)


LATER = Click(point=Point(100.0, 200.0))
CROP: Crop = (270, 1200, 810, 2400)
WHOLE, PLAN, FOUND = said("whole screen", HERE), said("planner", HERE), said("grounder", LATER, query="the red one")
WHY = "because the response of"
ZOOM, PAIR, ALL = scripted(2), scripted(None, True), scripted(2, True)


@every_row(
    ("model", "stages", "point", "stage"),
    [
        (ZOOM, [WHOLE], (500, 750), "whole screen"),
        (ZOOM, [WHOLE, said("zoom", LATER, crop=CROP)], (300, 600), "zoom"),
        (PAIR, [PLAN, FOUND], (100, 200), "grounder"),
        (ALL, [PLAN, FOUND, said("zoom", LATER, query="q", crop=CROP)], (300, 600), "zoom"),
        (ZOOM, [WHOLE, said("zoom", "no")], (500, 750), f"whole screen, {WHY} zoom has no action: no action in 'no'"),
        (PAIR, [PLAN, said("grounder", Stop())], (500, 750), f"planner, {WHY} grounder has no place, but STOP"),
        (PAIR, [said("planner", HERE, thought=None)], (500, 750), "planner, because it has no words for the grounder"),
    ],
)
def test_the_last_place_counts_and_a_stage_without_one_is_named(
    model: Composition, stages: list[StageResponse], point: tuple[float, float], stage: str
) -> None:
    task = make_episode("a", [HERE]).steps[0]
    text = written(stages)
    read = model.parse_response(task, text)
    assert stages_in(text) == tuple(stages) and isinstance(read.action, Click)
    assert (*read.action.point, read.stage) == (*point, stage)
    assert [line for line in composition.in_words(text).splitlines() if line.startswith("[")] == [
        f"[{number}] {each.stage}: m"
        + f", query {each.query!r}" * (each.query is not None)
        + ", shown (270, 1200) to (810, 2400) of the screenshot" * (each.crop is not None)
        for number, each in enumerate(stages, 1)
    ]
    (entry,) = model.own_past([HistoryEntry(task, HERE, None, None, text, "model")])
    assert entry.raw_response == stages[0].text, "a family was shown the responses of other stages as its own"


def test_what_is_no_text_of_stages_is_the_familys_own() -> None:
    model, task = scripted(2), make_episode("a", [HERE]).steps[0]
    assert model.parse_response(task, reply_with(HERE)).stage == ""
    for text in ('{"stages": [', '{"stages": []}', '{"stages": [{"stage": 1}]}', written([said("whole screen", "no")])):
        with pytest.raises(ParseError):
            model.parse_response(task, text)
    assert model.following(task, [said("whole screen", HERE, finish_reason="abort")]) is None
    for unplaced in (Type(text="tea"), "no"):
        assert model.following(task, [said("whole screen", unplaced)]) is None


class Staged(ScriptedEngine):
    """Answers every stage, and calls ``at`` before it answers that of an episode."""

    def __init__(self, at: dict[str, Any] | None = None) -> None:
        def policy(request: Request) -> str:
            if (act := (at or {}).get(f"{request.task.episode_id}{request.request_id.split('|')[5:]}")) is not None:
                act()
            return reply_with(LATER if request.task.setting == "grounding" else HERE, "the red one")

        super().__init__(policy, usage=lambda request: USAGE)

    @property
    def asked(self) -> list[str]:
        return sorted(request.request_id.split("||")[1] for request in self.requests)


def paid(directory: Path) -> tuple[int, int]:
    """The responses of the journal, and those of the finished records."""
    records = list(RunFolder(directory).records)
    counted = [(len(record.sample.responses), record.finished) for record in records]
    return sum(count for count, _ in counted), sum(count for count, finished in counted if finished)


def test_a_kill_between_stages_loses_no_response_and_pays_for_none_twice(tmp_path: Path) -> None:
    """``killed`` is what is on the disk when b's grounder is queried; ``stopped`` is ended then by an error of the server."""
    episodes = [make_episode(name, [HERE]) for name in "abc"]
    killed, stopped = tmp_path / "killed", tmp_path / "stopped"

    def stop() -> None:
        shutil.copytree(stopped, killed)
        raise FatalEngineError("no credit")

    model = scripted(None, True)
    first = scripted_runner(stopped, episodes, Staged(), model=model, concurrency=1, grounder=Staged({"b['grounder']": stop}))
    with pytest.raises(FatalEngineError, match="no credit"):
        first.execute(resume=False)
    for directory, before in ((killed, (2, 2)), (stopped, (3, 2))):
        assert paid(directory) == before, directory.name
        planner, grounder = Staged(), Staged()
        runner = scripted_runner(directory, episodes, planner, model=model, concurrency=1, grounder=grounder)
        assert runner.execute(resume=True).progress.tokens.answers == 6, directory.name
        assert (planner.asked, grounder.asked) == (["c|0|0"], ["b|0|0|grounder", "c|0|0|grounder"]), directory.name
        assert paid(directory)[0] == 6, directory.name
        samples = [record.sample for record in RunFolder(directory).records if record.finished]
        assert Counter(sample.stage for sample in samples) == {"grounder": 3}
        assert all(len(stages_in(sample.raw_response or "")) == 2 for sample in samples)
    again = Staged()
    (killed / STEPS).write_bytes(b"")
    scripted_runner(killed, episodes, again, model=model, grounder=Staged()).execute(resume=True)
    assert again.asked == ["a|0|0", "b|0|0", "c|0|0"], "a response that is on record was used for another one"


@pytest.fixture
def served(tmp_path: Path) -> Any:
    """Servers of a planner and a grounder that are right about every place."""
    benchmark = load_benchmark("demo-icons", tmp_path / "data", episodes=2)
    fixed = {"policy": "reference", "zoom": 2, "keep": 99}
    with (
        MockServer(MockSettings.model_validate({**fixed, "model": NAMES[0]}), benchmark=benchmark) as planner,
        MockServer(MockSettings.model_validate({**fixed, "model": NAMES[1]}), benchmark=benchmark) as grounder,
    ):
        yield planner, grounder


@pytest.mark.parametrize(
    ("given", "stages", "scaffold"),
    [
        (["--model", "qwen3-vl-8b-instruct", "--zoom", "2"], ["whole screen", "zoom"], "qwen3-vl-default+zoom-2"),
        (["--model", BOTH, "--zoom", "2"], ["planner", "grounder", "zoom"], "qwen3-vl-default+grounder-uground-v1-7b+zoom-2"),
    ],
)
def test_a_composition_runs_is_counted_and_is_scored_again_without_a_model(
    given: list[str], stages: list[str], scaffold: str, served: Any, tmp_path: Path, guieval: CommandLine
) -> None:
    planner, grounder = served
    out, alone = tmp_path / "out", tmp_path / "alone"
    where: list[str | Path] = ["--bench", "demo-icons", "--data", tmp_path / "data", "--set", "bench_options.episodes=2"]
    where += ["--quiet", "--base-url", planner.base_url]
    apart = ["--grounder-base-url", grounder.base_url] if "grounder" in stages else []
    assert guieval("run", *given, *where, *apart, "--out", out).code == 0
    run = RunFolder(out)
    samples = [record.sample for record in run.records]
    assert samples and all(sample.outcome.exact_match and sample.stage == "zoom" for sample in samples)
    for sample in samples:
        found = stages_in(sample.raw_response or "")
        assert [stage.stage for stage in found] == stages
        assert sample.responses == tuple(stage.usage for stage in (found[-1], *found[:-1])), "a response is not in the record"
        assert sample.seconds == pytest.approx(sum(stage.seconds or 0 for stage in found))
    assert run.stored["cost"]["answers"] == len(stages) * len(samples)
    assert (run.manifest.scaffold and run.manifest.scaffold.name) == scaffold
    again = json.loads(guieval("score", out, "--reparse", "--json").out)["runs"][0]["protocols"][0]["metrics"]
    assert (again["exact match"]["value"], again["exact match"]["n"]) == (1, len(samples))
    assert guieval("run", *given[:1], "qwen3-vl-8b-instruct", *where, "--out", alone).code == 0
    compared = guieval("compare", out, alone)
    assert "scaffold" in compared.out and scaffold not in guieval("report", alone).out
    assert planner.stats()["served"] + grounder.stats()["served"] == (len(stages) + 1) * len(samples)


def test_a_planner_and_a_grounder_act_and_each_is_paid_at_its_own_price(tmp_path: Path, guieval: CommandLine) -> None:
    """On the simulated phone, where a note is pinned by a long press: a grounder has a click for its place.

    A mock server states 3,000 and 60 tokens, so a planner's response costs 0.0066 USD and a grounder's 0.00156 USD.
    """
    data, (planner, grounder) = tmp_path / "data", (MockSettings(policy="reference", model=name) for name in NAMES)
    benchmark = load_benchmark("demo", data)
    (tmp_path / "one").write_text("s0-0011\n")
    entry = {"models": [NAMES[0]], "currency": "USD", "input": 2.0, "output": 10.0, "source": "made up", "as_of": "today"}
    other = {**entry, "models": [NAMES[1]], "input": 0.5, "output": 1.0}
    for name, each in (("prices", other), ("others", {**other, "input": 5.5}), ("euros", {**other, "currency": "EUR"})):
        (tmp_path / f"{name}.yaml").write_text(json.dumps([entry, each]))
    (tmp_path / "half.yaml").write_text(json.dumps([entry, {**entry, "models": [BOTH]}]))
    given = ("--mode", "online", "--bench", "demo", "--data", data, "--episodes", tmp_path / "one", "--quiet")
    with MockServer(planner, benchmark=benchmark) as first, MockServer(grounder, benchmark=benchmark) as second:
        asked = ("run", "--model", BOTH, *given, "--base-url", first.base_url, "--grounder-base-url", second.base_url)
        done = guieval(*asked, "--out", tmp_path / "out", "--prices", tmp_path / "prices.yaml")
        served = [server.stats()["served"] for server in (first, second)]
        for file, problem in (("half", "needs the price of 'osunlp/UGround"), ("euros", f"and {NAMES[1]!r} is in EUR")):
            refused = guieval(*asked, "--budget", "1", "--out", tmp_path / file, "--prices", tmp_path / f"{file}.yaml")
            assert refused.code == 2 and problem in refused.err, refused.err
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in (tmp_path / "out" / "trajectories.jsonl").read_text().splitlines() if line]
    assert [(row["action"]["type"], row["stage"]) for row in rows] == [
        *(("CLICK", "grounder"), ("LONG_PRESS", "grounder"), ("CLICK", "grounder"), ("STOP", "planner"))
    ]
    run = RunFolder(tmp_path / "out")
    (outcome,) = (task.samples[0].outcome for task in run.tasks)
    assert outcome is not None and outcome.ended == "success" and served == [4, 3]
    parts = f"{NAMES[0]} 0.0264 USD, {NAMES[1]} 0.004680 USD; prices as of today"
    assert f": 0.0311 USD (21,000 tokens in, 420 out, 3 of 7 responses beside the answers; {parts})" in done.out
    assert run.stored["cost"]["amount"] == pytest.approx(4 * 0.0066 + 3 * 0.00156)
    assert "31.08 USD" in guieval("leaderboard", tmp_path / "out").out
    assert "76.08 USD" in guieval("leaderboard", tmp_path / "out", "--prices", tmp_path / "others.yaml").out


@every_row(
    ("name", "message"),
    [
        ("planner=qwen3-vl-8b-instruct", r"cannot use 'planner=qwen3-vl-8b-instruct' as a model: a composition of two is"),
        ("planner=a,planner=b", r"planner=NAME,grounder=NAME"),
        ("planner=qwen3-vl-8b-instruct,grounder=ugroud-v1-7b", r"unknown model 'ugroud-v1-7b' \(did you mean 'uground-"),
    ],
)
def test_what_is_no_composition_is_refused(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_model(name)
