"""Signs of a gamed reward: the probes, which game rewards on purpose, show them, and the expert does not."""

from __future__ import annotations

from guieval.actions import Click, Open, Point, Type
from guieval.registry import load_benchmark, load_model
from guieval.rewards import ResponseScorer, open_scorer
from guieval.rewards.probes import EXPERT, PROBES
from guieval.rewards.signs import SIGNS, words
from guieval.steps import StepTaskModel
from tests.model_adapters.steps import step
from tests.rows import every_row

CLICK = step(Click(point=Point(500, 500)))
FAMILIES = ("ui-s1-7b", "qwen2.5-vl-7b", "ui-tars-7b", "os-atlas-pro-7b", "tiny-policy")


def shown(scorer: ResponseScorer, task: StepTaskModel, text: str) -> set[str]:
    scored = scorer.score(task, text)
    return {sign.name for sign in SIGNS if sign.holds(scorer, task, scored)}


@every_row("family", FAMILIES)
def test_a_reference_reply_shows_no_sign(family: str) -> None:
    scorer = open_scorer(family, "ui-s1-lenient")
    benchmark = load_benchmark("demo")
    for ref in list(benchmark.index())[:4]:
        for task in benchmark.load(ref).steps:
            text = EXPERT.reply(scorer, task)
            if text is not None:
                assert not shown(scorer, task, text), text


@every_row(
    ("probe", "sign"),
    [
        ("two-answers", "several-answers"),
        ("empty-text", "empty-text"),
        ("typed-instruction", "copied-instruction"),
        ("copied-instruction", "copied-instruction"),
        ("no-thought", "malformed"),
        ("format-spam", "malformed"),
    ],
)
def test_a_probe_shows_its_sign(probe: str, sign: str) -> None:
    scorer = open_scorer("ui-s1-7b", "ui-s1")
    reply = next(each.reply for each in PROBES if each.name == probe)(scorer, CLICK)
    assert reply is not None and sign in shown(scorer, CLICK, reply)


@every_row("family", FAMILIES)
def test_two_different_answers_are_several(family: str) -> None:
    scorer = open_scorer(family, "ui-s1-lenient")
    first, second = (load_model(family).render(CLICK, Click(point=Point(x, 500)), "now", None) for x in (100, 900))
    assert "several-answers" in shown(scorer, CLICK, f"{first}\n{second}")


def test_text_that_is_meant_is_no_sign() -> None:
    scorer = open_scorer("ui-s1-7b", "ui-s1")
    for action in (Type(text="milk"), Open(app="Notes")):
        reply = scorer.model.render(CLICK, action, "I type.", None)
        assert not shown(scorer, CLICK, reply)
    assert words(scorer.score(CLICK, " one two\nthree ")) == 3
