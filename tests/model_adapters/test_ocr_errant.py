"""Agents of known strength: what they know, how often they slip, and what their own past does to them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from guieval.actions import Action, Click, LongPress, Point, Press, Scroll, Stop, Type, Wait
from guieval.conformance import example_step
from guieval.data.screenshots import Screenshot
from guieval.errors import ParseError, UsageError
from guieval.history import HistoryEntry
from guieval.models import ABCModel, Request
from guieval.registry import build_model, model_config

from .test_ocr_baseline import needs_ocr

key_of = import_module("guieval.model_adapters.ocr_errant").key_of
SCREEN = b"any bytes: the screen is not read where the answer is known"
ANSWER = Click(point=Point(250.0, 500.0))
STEP = example_step(ANSWER)


def agent(**options: Any) -> ABCModel:
    return build_model(model_config("ocr-errant").model_copy(update={"options": options}))


def entry(action: Action, origin: Any, sentence: str = "Tap it.") -> HistoryEntry:
    return HistoryEntry(STEP, action, None, sentence, None, origin)


def acted(model: ABCModel, history: Sequence[HistoryEntry] = (), screen: bytes = SCREEN) -> Action:
    request = Request(model.prepare_input(STEP, history), (Screenshot(screen, "png", (360, 800)),), {}, "r", STEP)
    return model.parse_response(STEP, model.respond(request)).action


@pytest.fixture
def answers(tmp_path: Path) -> str:
    """A file with the answer to :data:`SCREEN`."""
    file = tmp_path / "answers.json"
    file.write_text(json.dumps({key_of(STEP.instruction, SCREEN): ANSWER.model_dump(mode="json")}), encoding="utf-8")
    return str(file)


def test_a_known_screen_is_answered_by_heart_and_another_one_is_left(answers: str) -> None:
    for off_path, button in (("home", "HOME"), ("back", "BACK")):
        model = agent(answers=answers, off_path=off_path)
        assert acted(model) == ANSWER
        assert acted(model, screen=b"another screen") == Press(button=button)


def test_what_it_knows_is_a_share_drawn_by_seed(answers: str) -> None:
    known = [acted(agent(answers=answers, knows=0.3, seed=seed, off_path="home")) == ANSWER for seed in range(300)]
    assert 60 <= sum(known) <= 120
    assert known[:5] == [acted(agent(answers=answers, knows=0.3, seed=seed, off_path="home")) == ANSWER for seed in range(5)]


@needs_ocr
def test_the_rate_of_slips_and_what_the_past_adds_to_it(answers: str, demo_screen: bytes) -> None:
    file = Path(answers)
    file.write_text(json.dumps({key_of(STEP.instruction, demo_screen): ANSWER.model_dump(mode="json")}), encoding="utf-8")

    def slips(history: Sequence[HistoryEntry], **options: Any) -> int:
        return sum(acted(agent(answers=answers, seed=seed, **options), history, demo_screen) != ANSWER for seed in range(200))

    own, given = [entry(ANSWER, "model")], [entry(ANSWER, "reference")]
    assert slips(given, slip=0.0) == 0 and 25 <= slips(given, slip=0.2) <= 60
    assert slips(given, slip=0.0, drift=0.5) == 0 and 70 <= slips(own, slip=0.0, drift=0.5) <= 130
    assert slips(own, slip=0.2, drift=-0.2) == 0
    assert 70 <= slips([entry(ANSWER, "model", "Slip: Wait."), *own], slip=0.05, after_slip="lost") <= 130
    assert slips([entry(ANSWER, "reference", "Slip: Wait.")], slip=0.0, after_slip="lost") == 0


def test_habit_repeats_the_own_last_step(answers: str) -> None:
    typed = Type(text="again")
    model = agent(answers=answers, habit=1.0)
    assert acted(model, [entry(typed, "model")]) == typed and acted(model, [entry(typed, "reference")]) == ANSWER


def test_it_goes_back_after_a_slip_of_its_own(answers: str) -> None:
    model = agent(answers=answers, after_slip="recover")
    assert acted(model, [entry(ANSWER, "model", "Slip: Wait.")]) == Press(button="BACK")
    assert acted(model, [entry(ANSWER, "model")]) == ANSWER


@pytest.mark.parametrize(
    ("error", "right", "wrong"),
    [
        ("wait", ANSWER, Wait()),
        ("empty-tap", ANSWER, Click(point=Point(500.0, 5.0))),
        ("long-press", ANSWER, LongPress(point=ANSWER.point)),
        ("long-press", Stop(), Stop()),
        ("scroll", ANSWER, Scroll(point=Point(500.0, 500.0), direction="up")),
        ("back", ANSWER, Press(button="BACK")),
        ("random-tap", Stop(), Click),
        ("first-click", ANSWER, Click),
        ("typo", Type(text="ab"), ("xab", "aab", "abb")),
        ("finish", ANSWER, Stop()),
        ("impossible", ANSWER, Stop(status="impossible")),
        ("never-finish", Stop(), Wait()),
        ("never-finish", ANSWER, ANSWER),
        ("not-understood", Stop(), Click),
    ],
)
def test_a_kind_of_error_takes_the_place_of_the_known_answer(answers: str, error: str, right: Action, wrong: Any) -> None:
    Path(answers).write_text(json.dumps({key_of(STEP.instruction, SCREEN): right.model_dump(mode="json")}), encoding="utf-8")
    found = acted(agent(answers=answers, error=error))
    if isinstance(wrong, tuple):
        assert isinstance(found, Type) and found.text in wrong
    elif wrong is Click:
        assert isinstance(found, Click) and found != right
    else:
        assert found == wrong
    assert acted(agent(answers=answers, error=error, rate=0.0)) == right


def test_only_the_first_click_of_a_task_errs_and_noise_moves_a_click_by_its_deviation(answers: str) -> None:
    assert acted(agent(answers=answers, error="first-click"), [entry(ANSWER, "model")]) == ANSWER
    places = [acted(agent(answers=answers, noise=20.0, seed=seed)) for seed in range(200)]
    across = [each.point.x - ANSWER.point.x for each in places if isinstance(each, Click)]
    assert len(across) == 200 and 17 < stdev(across) < 23 and abs(mean(across)) < 5
    with pytest.raises(ParseError):
        acted(agent(answers=answers, error="unparseable"))


@needs_ocr
def test_without_knowledge_it_is_the_baseline_less_what_it_may_not_do(demo_screen: bytes) -> None:
    baseline = build_model(model_config("ocr-baseline"))
    assert acted(agent(), screen=demo_screen) == acted(baseline, screen=demo_screen)
    later = [entry(Press(button="HOME"), "reference", "Go home.")]
    action = acted(agent(), later, demo_screen)
    assert action == acted(baseline, later, demo_screen) and isinstance(action, Scroll)
    assert acted(agent(scroll=False), later, demo_screen) == Press(button="BACK")


@pytest.mark.parametrize("content", [None, "[]", "{"])
def test_a_file_of_answers_that_cannot_be_read_is_a_mistake(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "answers.json"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=r"option answers: .*answers\.json"):
        acted(agent(answers=str(file)))


@pytest.fixture(scope="module")
def demo_screen() -> bytes:
    """The simulated phone's home screen, on which nothing fits the instruction."""
    from guieval.playground.phone import encode, generate_episode

    return encode(generate_episode(0, 0).start.render())
