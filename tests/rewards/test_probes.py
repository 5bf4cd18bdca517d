"""What degenerate policies earn, the signs of a gamed reward that they show, and the command that tells of both."""

from __future__ import annotations

import pytest

from guieval.actions import Boxes, Click, Open, Point, Scroll, Type, Wait
from guieval.registry import load_benchmark, load_model
from guieval.rewards import REWARDS, ResponseScorer, get_reward, open_scorer
from guieval.rewards.probes import EXPERT, PROBES, Earnings, probe
from guieval.rewards.signs import SIGNS, words
from guieval.steps import StepTaskModel
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY
from tests.model_adapters.steps import step
from tests.rows import every_row

TASKS = [
    step(Scroll(point=Point(500, 500), direction="up")),
    step(Click(point=Point(500, 500)), targets=Boxes([[400.0, 400.0, 600.0, 600.0]])),
    step(Type(text="Turn on Wi-Fi")),
    step(Wait()),
]
"""Each of the first policies is right on one of them: the instruction is what is to be typed."""


def earned(scorer: ResponseScorer) -> dict[str, Earnings]:
    return {each.probe.name: each for each in probe(scorer, TASKS)}


def test_each_policy_earns_what_it_gets_right_and_under_ui_s1_by_the_papers_form_alone() -> None:
    found = earned(open_scorer("ui-s1-7b", "hypertrack"))
    assert list(found) == [each.name for each in PROBES]
    assert found["expert"].reward == 2.0 and found["expert"].exact_match == 1.0
    for name in ("always-swipe", "centre-click", "typed-instruction", "always-wait"):
        assert (found[name].steps, found[name].reward, found[name].type_match, found[name].exact_match) == (4, 0.5, 0.25, 0.25)
    assert (found["empty-text"].type_match, found["empty-text"].exact_match) == (0.25, 0.0)
    assert found["copied-instruction"].reward == 0.0
    assert (found["nonsense"].reward, found["nonsense"].format) == (0.25, 1.0)
    for name in ("no-thought", "format-spam", "two-answers", "unclosed-thought"):
        assert (found[name].steps, found[name].reward) == (4, 2.0)  # a reward without a form does not mind them
    for name in ("one-letter", "overlong-text"):
        assert (found[name].steps, found[name].type_match, found[name].exact_match) == (1, 1.0, 0.0)
    # UI-S1 pays for the paper's form and an exact action alone
    found = earned(open_scorer("ui-s1-7b", "ui-s1"))
    assert found["expert"].reward == pytest.approx(1.0)
    for name in ("no-thought", "format-spam", "two-answers", "unclosed-thought", "copied-instruction"):
        assert (found[name].reward, found[name].format) == (0.0, 0.0)
    for name in ("one-letter", "overlong-text"):
        assert found[name].reward == pytest.approx(0.5) and found[name].exact_match == 0.0
    assert found["empty-text"].exact_match == 0.0
    lenient = earned(open_scorer("ui-s1-7b", "ui-s1-lenient"))
    for name in ("no-thought", "format-spam", "two-answers", "unclosed-thought", "one-letter", "overlong-text"):
        assert lenient[name].reward == pytest.approx(1.0)


def test_a_form_alone_is_earned_by_nonsense_and_a_containment_rule_by_typing_nothing() -> None:
    found = earned(open_scorer("ui-r1-3b", "ui-r1"))
    assert found["nonsense"].reward == 1.0 and found["nonsense"].type_match == 0.0
    assert found["always-swipe"].steps == 0 and found["always-swipe"].reward is None  # UI-R1's format has no direction
    assert found["expert"].steps == 1
    # Which is why a reward is probed under the protocol that it shall have.
    assert earned(open_scorer("ui-s1-7b", "hypertrack", protocol="guievalkit"))["empty-text"].exact_match == 0.25


@every_row("name", [name for name, kind in REWARDS.items() if not kind.reads_text])
def test_nothing_earns_more_than_the_expert(name: str) -> None:
    found = earned(ResponseScorer(load_model("ui-s1-7b"), get_reward(name)))
    for each in found.values():
        assert each.reward is not None and each.expert is not None and each.reward <= each.expert
    assert found["expert"].reward == found["expert"].expert


def test_the_command_shows_every_policy_under_every_protocol(guieval: CommandLine) -> None:
    judges = ("--protocol", "guievalkit", "--protocol", "ui-s1-sop")
    steps = ("--bench", "demo", "--set", "episodes=2", "--limit", "9")
    done = guieval("train", "probe-reward", "ui-s1", *steps, *judges, "--weight", "format_weight=0")
    assert done.code == 0, done.err
    lines = [line.split() for line in done.out.splitlines()]
    shown = [(line[0], line[1]) for line in lines if len(line) > 2 and line[0] in {each.name for each in PROBES}]
    assert shown == [(each.name, protocol) for protocol in ("guievalkit", "ui-s1-sop") for each in PROBES]
    assert next(line for line in lines if line[:1] == ["expert"])[2:7] == ["0.900", "100.0", "100.0", "100.0", "9"]
    told = "9 steps of demo in the format of qwen2.5-vl-7b-ui-s1; a response that has every part in full earns 0.9"
    assert f"ui-s1: {told}" in done.out


def test_the_table_in_the_docs_is_the_commands_and_odd_experts_are_noted(guieval: CommandLine) -> None:
    done = guieval("train", "probe-reward", "ui-s1", "--bench", "demo")
    page = (REPOSITORY / "docs" / "rewards.md").read_text()
    shown = {line.split()[0]: line.split()[2:6] for line in done.out.splitlines() if line.split()}
    for each in PROBES:
        assert f"| {' | '.join([each.name, *shown[each.name]])} | {each.summary} |" in page
    done = guieval("train", "probe-reward", "ui-r1", "--bench", "demo", "--set", "episodes=1", "--model", "ui-tars-7b")
    assert "note: no response of the expert has the form that ui-r1 requires: <think>...</think> <answer>" in done.out
    # A share of nothing, or of a loss, would mean nothing.
    less = [f"--weight={name}_weight={value}" for name, value in (("format", -1), ("type", 0), ("exact", 0))]
    done = guieval("train", "probe-reward", "ui-s1", "--bench", "demo", "--set", "episodes=1", *less)
    assert "under ui-s1-reward the expert earns less than nothing" in done.out and "% of the expert" not in done.out


@every_row(
    ("arguments", "sentence"),
    [
        (("ui-s2", "--bench", "demo"), "unknown reward 'ui-s2' (did you mean 'ui-s1'?)"),
        (("ui-s1", "--bench", "demos"), "unknown benchmark 'demos' (did you mean 'demo'?)"),
        (("ui-s1", "--bench", "demo", "--protocol", "guievalki"), "unknown protocol 'guievalki' (did you mean 'guievalkit'?)"),
        (("ui-s1", "--bench", "demo", "--model", "ui-s1-7"), "unknown model 'ui-s1-7' (did you mean 'ui-s1-7b'?)"),
        (("ui-s1", "--bench", "demo", "--weight", "exact"), "--weight needs name=number, e.g. type_weight=0.4, got 'exact'"),
        (("ui-s1", "--bench", "demo", "--weight", "a=1", "--weight", "a=2"), "--weight gives 'a' twice"),
        (("ui-s1", "--bench", "demo", "--weight", "exakt_weight=1"), "(did you mean 'exact_weight'?)"),
        (("ui-s1", "--bench", "demo", "--weight", "protocol=1"), "reward 'ui-s1' has no weight 'protocol'"),
        (("agentnet", "--bench", "demo", "--weight", "similarity=0"), "similarity is 0.0"),
        (("ui-s1", "--bench", "demo", "--limit", "0"), "--limit"),
        (("ui-s1", "--bench", "screenspot"), "--data"),
    ],
)
def test_mistakes_end_with_one_sentence(guieval: CommandLine, arguments: tuple[str, ...], sentence: str) -> None:
    assert sentence in guieval.sentence("train", "probe-reward", *arguments)


CLICK = step(Click(point=Point(500, 500)))
FAMILIES = ("ui-s1-7b", "qwen2.5-vl-7b", "ui-tars-7b", "os-atlas-pro-7b", "tiny-policy")


def signs_of(scorer: ResponseScorer, task: StepTaskModel, text: str) -> set[str]:
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
                assert not signs_of(scorer, task, text), text


@every_row(
    ("probe", "sign"),
    [
        *[("two-answers", "several-answers"), ("empty-text", "empty-text"), ("typed-instruction", "copied-instruction")],
        *[("copied-instruction", "copied-instruction"), ("no-thought", "malformed"), ("format-spam", "malformed")],
    ],
)
def test_a_probe_shows_its_sign(probe: str, sign: str) -> None:
    scorer = open_scorer("ui-s1-7b", "ui-s1")
    reply = next(each.reply for each in PROBES if each.name == probe)(scorer, CLICK)
    assert reply is not None and sign in signs_of(scorer, CLICK, reply)


@every_row("family", FAMILIES)
def test_two_different_answers_are_several_and_text_that_is_meant_is_no_sign(family: str) -> None:
    scorer = open_scorer(family, "ui-s1-lenient")
    first, second = (load_model(family).render(CLICK, Click(point=Point(x, 500)), "now", None) for x in (100, 900))
    assert "several-answers" in signs_of(scorer, CLICK, f"{first}\n{second}")
    for action in (Type(text="milk"), Open(app="Notes")):
        reply = scorer.model.render(CLICK, action, "I type.", None)
        assert not signs_of(scorer, CLICK, reply)
    assert words(scorer.score(CLICK, " one two\nthree ")) == 3
