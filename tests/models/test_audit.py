"""The coordinate audit: real replies show their family's documented frame, and a run in a wrong one is warned in time."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Action, Boxes, Click, LongPress, Point, Stop, Type
from guieval.errors import ParseError
from guieval.evaluation import ActionEvaluator
from guieval.frames import PER_999, PER_1000, PIXELS, RELATIVE, Frame, Normalised, ResizedPixels, Size
from guieval.journal import RunFolder
from guieval.models import ABCModel, ParsedResponse, Request
from guieval.models.frame_audit import (
    ENOUGH,
    NEAR,
    FrameAudit,
    FrameReport,
    FrameWatch,
    StepAudit,
    audit_records,
    mcnemar,
    targets_of,
    title,
)
from guieval.models.scored_response import read_response
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark, load_model
from guieval.running.outcome import RunOutcome
from guieval.running.progress.counts import RunProgress
from guieval.settings import RunConfig
from guieval.steps import Episode, Sample, StepTaskModel
from tests.command_line import CommandLine
from tests.model_adapters.replies import Target, rows, screenshot_sizes, size_of, target_of
from tests.model_adapters.steps import adapter, step
from tests.scripted import ListBenchmark, ScriptedEngine, runner_of

PAIR = r"\[([\d.]+), ?([\d.]+)\]"
BOXED = r"\(([\d.]+),([\d.]+)\),\(([\d.]+),([\d.]+)\)"
DOCUMENTED: dict[str, tuple[Frame, str, bool]] = {
    "qwen2_5_vl": (ResizedPixels(), PAIR, True),
    "se_gui": (ResizedPixels(), PAIR, False),  # 46 rows, 7 in their targets
    "aguvis": (RELATIVE, r"click\(x=([\d.]+), y=([\d.]+)\)", True),
    "mai_ui": (PER_1000, PAIR, True),
    "gui_plus": (PER_1000, PAIR, True),
    "qwen2_vl": (PER_1000, BOXED, False),  # 116 rows, 3 in their targets
}
"""Per file of replies: the frame its model's authors document, where the numbers stand, and whether so many of the replies hit
that a wrong declaration can be detected."""


def placed(shared_data: Path, file: str, sizes: dict[str, Size]) -> Iterator[tuple[str, Size, Target, tuple[float, float]]]:
    """The replies that state a place and whose target is known: text, screen, target, and the place as it is written."""
    for row in rows(shared_data, file):
        size = size_of(row, sizes)
        target = target_of(row, size) if size is not None else None
        found = re.search(DOCUMENTED[file][1], row.text)
        if size is not None and target is not None and found is not None:
            numbers = [float(number) for number in found.groups()]
            x, y = numbers if len(numbers) == 2 else [(numbers[0] + numbers[2]) / 2, (numbers[1] + numbers[3]) / 2]
            yield row.text, size, target, (x, y)


def real_audit(shared_data: Path, sizes: dict[str, Size], file: str, declared: Frame) -> FrameAudit:
    audit = FrameAudit(declared)
    for _, size, target, (x, y) in placed(shared_data, file, sizes):
        audit.add(x, y, size, (target,))
    return audit


def test_real_replies_fit_the_documented_frame(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = screenshot_sizes(shared_data)
    for file, (documented, _, plenty) in DOCUMENTED.items():
        report = real_audit(shared_data, sizes, file, documented).report()
        with capsys.disabled():
            print(f"\n{file}: {report.sentence}")
        assert report.declared.name == title(documented)
        assert report.declared.hits == max(fit.hits for fit in report.fits) > 0
        assert report.better is None
        wrong = PER_1000 if isinstance(documented, ResizedPixels) else ResizedPixels()
        found = real_audit(shared_data, sizes, file, wrong).report()
        if plenty:
            assert found.better is not None
            # 0-999 and 0-1000 differ by a thousandth, pixels before and after resizing here by up to a hundredth
            assert found.better.hits == report.declared.hits
            assert report.declared.name in found.alike
        else:
            assert found.better is None


def test_qwen_answers_in_pixels_after_resizing_and_not_before(shared_data: Path) -> None:
    """The two differ by at most 1 % on these screens, yet 9 replies hit only in the one, and none only in the other."""
    report = real_audit(shared_data, screenshot_sizes(shared_data), "qwen2_5_vl", ResizedPixels()).report()
    fits = {fit.name: fit for fit in report.fits}
    assert (fits["pixels"].gained, fits["pixels"].lost) == (0, 9)
    assert fits["pixels"].name not in report.alike
    assert fits["pixels-resized-28 (at most 1,003,520 pixels)"].hits < 10
    assert fits["pixels-resized-28, x and y swapped"].hits < 10


@pytest.mark.parametrize("reread", [True, False])
def test_an_adapter_hands_out_the_numbers_it_read(shared_data: Path, reread: bool) -> None:
    """Through the adapter, from the raw reply or from the recorded action, the audit is that of the bare numbers."""
    model, sizes = adapter("qwen2_5_vl"), screenshot_sizes(shared_data)
    audit = StepAudit(model)
    judge = ActionEvaluator("guievalkit")
    for text, size, target, _ in placed(shared_data, "qwen2_5_vl", sizes):
        centre = Click(point=Point((target.left + target.right) / 2, (target.top + target.bottom) / 2))
        task = step(centre, screenshot_size=size, setting="grounding", targets=Boxes([target]))
        audit.add(task, read_response(model, judge, task, text), reread=reread)
    assert audit.audit is not None
    report = audit.audit.report()
    # of 113: two hit targets that fill more than a tenth of the screen, far from their centre
    assert (report.declared.name, report.declared.hits) == ("pixels-resized-28", 111)
    assert report.declared.outside == 4  # numbers off the screen are seen, though the adapter refuses them


def test_mcnemar_is_exact() -> None:
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(5, 0) == mcnemar(0, 5) == 2 / 32
    assert mcnemar(8, 2) == 2 * (1 + 10 + 45) / 1024
    assert mcnemar(3, 3) == 1.0
    assert mcnemar(5000, 0) == 0.0


def test_few_steps_and_little_gain_say_nothing() -> None:
    size = (1080, 2400)
    audit = FrameAudit(PER_1000)
    for index in range(ENOUGH - 1):
        audit.add(540.0 + index % 3, 1200.0, size, ((495.0, 495.0, 505.0, 505.0),))
    report = audit.report()
    assert report.better is None
    assert "too few" in report.sentence
    audit.add(540.0, 1200.0, size, ((495.0, 495.0, 505.0, 505.0),))
    report = audit.report()
    assert report.better is not None
    assert report.better.name == "pixels"
    assert report.better.chance < 1e-6
    for _ in range(200):  # now a fifth are right in pixels only, and the others in the declared frame only
        audit.add(500.0, 500.0, size, ((495.0, 495.0, 505.0, 505.0),))
    assert audit.report().better is None


def test_frames_are_named_with_their_limits() -> None:
    assert title(ResizedPixels()) == "pixels-resized-28"
    assert title(ResizedPixels(32, 4 * 32 * 32, 16384 * 32 * 32)) == "pixels-resized-32"
    assert title(ResizedPixels(28, 830_000, 937_664)) == "pixels-resized-28 (at least 830,000 and at most 937,664 pixels)"
    assert title(PER_999) == "0-999"
    names = FrameAudit(ResizedPixels(28, 830_000, 937_664), [PIXELS, ResizedPixels()]).names
    assert len(set(names)) == len(names) == 16
    assert FrameAudit(PER_1000).names.count("0-1000") == 1
    after = title(ResizedPixels(28, 3_110_400, first=ResizedPixels()))
    assert after == "pixels-resized-28 (at least 3,110,400 pixels) after pixels-resized-28"
    names = FrameAudit(Normalised(1000.0, digits=2)).names
    assert names[0] == "0-1000" and len(set(names)) == len(names), "however many decimals are written in it"


def replied(model: ABCModel, size: Size, write: Callable[[Point], str]) -> FrameReport:
    """The audit of replies to sixty narrow targets, read again from their texts."""
    audit, judge, dice = StepAudit(model), ActionEvaluator("seeclick-official"), random.Random(0)
    for _ in range(60):
        x, y = dice.uniform(500, 990), dice.uniform(500, 990)
        box = [x - 0.3, y - 0.3, x + 0.3, y + 0.3]
        task = step(Click(point=Point(x, y)), screenshot_size=size, setting="grounding", targets=Boxes([box]))
        audit.add(task, read_response(model, judge, task, write(Point(x, y))), reread=True)
    assert audit.audit is not None and audit.audit.steps == 60
    return audit.audit.report()


@pytest.mark.parametrize(("scale", "best"), [(1000, "0-1000"), (999, "0-999")])
def test_the_audit_states_which_scale_qwen3s_lists_have(scale: float, best: str) -> None:
    def write(point: Point) -> str:
        return f'[{{"point_2d": [{point.x * scale / 1000:.2f}, {point.y * scale / 1000:.2f}]}}]'

    for chosen in (1000, 999):
        report = replied(adapter("qwen3_vl", list_scale=chosen), (1080, 2400), write)
        fits = {fit.name: fit.hits for fit in report.fits[1:]}
        assert report.declared.hits == (60 if chosen == scale else 0)  # as the adapter reads them, not as it reads calls
        assert best == report.declared.name or fits[best] == 60


def test_the_audit_states_which_frame_ui_venus_ground_72b_has() -> None:
    size, script = (5120, 2880), load_model("ui-venus-ground-72b")

    def write(width: int, height: int) -> Callable[[Point], str]:
        return lambda point: "[{0:.1f},{1:.1f},{0:.1f},{1:.1f}]".format(point.x * width / 1000, point.y * height / 1000)

    assert replied(script, size, write(4760, 2688)).better is None
    better = replied(script, size, write(5124, 2884)).better
    assert better is not None and better.name == "pixels-resized-28 (at least 3,110,400 and at most 48,000,000 pixels)"


def test_a_screen_too_narrow_for_resizing_costs_only_those_readings() -> None:
    audit = FrameAudit(PER_1000)
    audit.add(500.0, 500.0, (10, 4000), ((400.0, 400.0, 600.0, 600.0),))
    fits = {fit.name: fit for fit in audit.report().fits}
    assert fits["0-1000"].hits == 1
    assert (fits["pixels-resized-28"].hits, fits["pixels-resized-28"].outside) == (0, 1)


def test_the_target_is_the_smallest_box_around_the_reference() -> None:
    near = Click(point=Point(500.0, 500.0))
    boxes = Boxes([[450, 450, 550, 550], [490, 490, 510, 510], [0, 0, 1000, 1000], [700, 700, 705, 705]])
    assert targets_of(step(near, targets=boxes)) == ((490.0, 490.0, 510.0, 510.0),)
    around = (500 - NEAR, 500 - NEAR, 500 + NEAR, 500 + NEAR)
    assert targets_of(step(near)) == (around,)
    assert targets_of(step(near, targets=Boxes([[0, 0, 1000, 1000]]))) == (around,)  # a box around everything tells nothing
    other = Click(point=Point(702.0, 702.0))
    assert targets_of(step(near, alternatives=(other, Stop()), targets=boxes))[1] == (700.0, 700.0, 705.0, 705.0)


def in_frame(name: str, frame: Frame) -> ABCModel:
    """A checkpoint that writes its points in another frame than its adapter believes."""
    model = copy.copy(load_model(name))
    vars(model)["frame"] = lambda task: frame
    return model


def episode(name: str, actions: Sequence[Action]) -> Episode:
    """With the clicks anywhere."""
    dice = random.Random(name)
    steps = []
    for index, action in enumerate(actions):
        x, y = dice.uniform(30, 970), dice.uniform(30, 970)
        clicks = isinstance(action, Click)
        boxes = Boxes([[x - 20, y - 20, x + 20, y + 20]] if clicks else [])
        fields: dict[str, Any] = {"episode_id": name, "episode_length": len(actions), "benchmark": "scripted"}
        steps.append(step(Click(point=Point(x, y)) if clicks else action, targets=boxes, step_index=index, **fields))
    return Episode(steps=tuple(steps))


CLICKS = [Click(point=Point(500.0, 500.0))] * 4


def frames(warnings: Sequence[str]) -> list[str]:
    """The warnings of another coordinate frame."""
    return [warning for warning in warnings if "guieval dev audit" in warning]


def run_as(
    directory: Path, model: str, writes: ABCModel, count: int, actions: Sequence[Action] = CLICKS, adapter: str | None = None
) -> RunOutcome:
    def policy(request: Request) -> str:
        return writes.render(request.task, request.task.action)

    episodes = [episode(str(index), actions) for index in range(count)]
    config = RunConfig(model=model, adapter=adapter, bench="scripted")
    seen: list[int] = []

    def see(progress: RunProgress) -> None:
        seen.extend([progress.done] if frames(progress.warnings) and not seen else [])

    run = runner_of(
        config, directory, ListBenchmark(episodes), load_model(model, adapter=adapter), ScriptedEngine(policy), 4, see
    )
    outcome = run.execute(resume=False)
    if frames(outcome.progress.warnings):
        assert seen == [ENOUGH], "the warning comes in time"
    return outcome


def test_a_run_in_a_wrong_frame_warns_once_and_in_time(tmp_path: Path, guieval: CommandLine) -> None:
    [warning] = run_as(tmp_path / "wrong", "ui-tars-1.5-7b", in_frame("ui-tars-1.5-7b", PER_1000), 60).progress.warnings
    assert re.search(r"0-(999|1000) hits 50 of 50 .*; these steps cannot tell it apart from 0-(999|1000):", warning)
    assert "declared frame pixels-resized-28" in warning
    done = guieval("dev", "audit", tmp_path / "wrong")
    assert done.code == 1, done.err
    assert re.search(r"another frame fits far better: 0-(999|1000) hits 240 of 240 targets \(100.0%\)", done.out)


def test_a_run_in_the_declared_frame_is_silent(tmp_path: Path, guieval: CommandLine) -> None:
    same = "pixels) hits {0} of {0} targets (100.0%), and no reading fits better; these steps cannot tell it apart from"
    for name, family in (("ui-tars-1.5-7b", None), ("mine", "ui_tars_1_5")):
        assert run_as(tmp_path / name, name, load_model("ui-tars-1.5-7b"), 60, adapter=family).progress.warnings == []
        done, score = guieval("dev", "audit", tmp_path / name), guieval("score", tmp_path / name)
        assert done.code == 0 and same.format(240) in done.out
        # that of an unlisted checkpoint is in its run, after 50, 100 and 200 clicks
        assert (same.format(200) in (RunFolder(tmp_path / name).manifest.frame_audit or "")) == (family is not None)
        assert ("frame of the unlisted checkpoint" in score.err) == (family is not None)
    other: list[Action] = [Type(text="tea"), LongPress(point=Point(1.0, 2.0)), Stop()]
    assert run_as(tmp_path / "none", "ui-tars-7b", load_model("ui-tars-7b"), 30, other).progress.warnings == []
    assert audit_records(load_model("ui-tars-7b"), RunFolder(tmp_path / "none").records) is None


def test_the_json_of_a_run_has_the_finding_of_an_unlisted_checkpoint(tmp_path: Path, guieval: CommandLine) -> None:
    benchmark = load_benchmark("demo-icons", tmp_path / "data", episodes=30)
    with MockServer(MockSettings(policy="reference", model="ui-tars-7b"), benchmark=benchmark) as server:
        given = ("--bench", "demo-icons", "--data", tmp_path / "data", "--set", "bench_options.episodes=30", "--quiet")
        asked = ("run", "--adapter", "ui_tars", *given, "--base-url", server.base_url, "--json", "--model")
        found = [json.loads(guieval(*asked, name).out)["runs"][0]["frame_audit"] for name in ("mine", "ui-tars-7b")]
    assert [len(each) for each in found] == [1, 0] and "0-1000 hits 50 of 50 targets" in found[0][0]


def test_wild_clicks_do_not_warn(tmp_path: Path) -> None:
    model = load_model("qwen3-vl-8b-instruct")
    dice = random.Random(1)

    class Wild:
        def render(self, task: StepTaskModel, action: Action) -> str:
            return model.render(task, Click(point=Point(dice.uniform(0, 1000), dice.uniform(0, 1000))))

    for seed in range(3):
        assert run_as(tmp_path / str(seed), "qwen3-vl-8b-instruct", Wild(), 120).progress.warnings == []  # type: ignore[arg-type]


def test_watching_never_ends_a_run() -> None:
    model, task = load_model("ui-tars-7b"), step()
    broken = copy.copy(model)
    vars(broken)["frame"] = lambda: None  # what a foreign adapter may do wrong
    watch, judge = FrameWatch(broken), ActionEvaluator("guievalkit")
    silent = Sample(outcome=judge.evaluate(task, None))
    for sample in (read_response(model, judge, task, model.render(task, task.action)), silent):
        assert watch.add(task, sample) is None
    audit = StepAudit(model)
    audit.add(task, silent, reread=True)
    assert audit.audit is None, "a sample without response or action states nothing"


def test_an_adapter_that_reads_without_its_frame_is_audited_by_encoding() -> None:
    """It decodes by itself, so only what it declares can take the numbers back."""

    class Own(type(load_model("ui-tars-7b"))):  # type: ignore[misc]
        def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
            try:
                x, y = json.loads(text)
            except ValueError:
                raise ParseError("no point") from None
            return ParsedResponse(Click(point=Point(x, y)))

    model = Own(load_model("ui-tars-7b").config)
    audit = StepAudit(model)
    task = step()
    judge = ActionEvaluator("guievalkit")
    for text in ("[500, 750]", "[0, 0]", "prose"):
        audit.add(task, read_response(model, judge, task, text), reread=True)
    assert audit.audit is not None
    assert (audit.audit.steps, audit.audit.report().declared.hits) == (2, 1)
