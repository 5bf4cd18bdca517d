"""The table of protocols: names, words, those of third parties, and that the data which they name exist."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from guieval.data.sample_sets import get_sample_set
from guieval.errors import UsageError
from guieval.evaluation import (
    ActionEvaluator,
    ClickRule,
    FailurePolicy,
    Protocol,
    ScrollRule,
    StepRules,
    get_protocol,
    list_protocols,
)
from guieval.evaluation.table import aitz, desktop_web, grounding, gui_odyssey
from guieval.registry import benchmarks
from guieval.steps import StepTaskModel
from tests.rows import every_row


def test_the_published_protocols_are_listed_under_their_own_names() -> None:
    names = list_protocols()
    assert {"guievalkit", "ui-s1-sop", "ui-s1-reward-match", "seeclick-official"} <= set(names)
    assert len(names) == len(set(names))
    assert [get_protocol(name).name for name in names] == names
    with pytest.raises(UsageError, match=r"unknown protocol 'ui-s1-spo' \(did you mean 'ui-s1-sop'\?\)"):
        get_protocol("ui-s1-spo")


@every_row(
    ("protocol", "words"),
    [
        (
            "guievalkit",
            (
                *("5 targets and elements", "x1.2", "0.04", "0.14", "200 ms", "HOME", "OPEN"),
                *("androidcontrol", "summed over all episodes"),
            ),
        ),
        ("agentcpm", ("wait and stop are one type", "a labelled long press is a click", "mean over episodes")),
        ("magicgui", ("any click matches where typing is labelled", "0.15 x 0.15", "square brackets")),
        (
            "osatlas",
            (
                *("at most 140 px", 'second one in "TYPE [text]"', 'words in "TYPE [text]"'),
                *("more than 0.5", "among the steps of the right type"),
            ),
        ),
        ("gui-r1", ("less than 0.14", "though it is not a type match", "over CLICK, LONG_PRESS steps")),
        ("os-genesis", ("368.45", "px of the screenshot", "Scroll up", "whole pixels")),
        ("clawgui", ("nearest to the predicted point", "canvas of 1080 x 2400")),
        ("infigui-r1", ("0.04 of the screenshot's longer side",)),
        (
            "ui-r1",
            (
                "cut to whole pixels of a canvas of 1080 x 2400 px",
                "less than 151.2 px",
                "coordinate of 0 misses",
                "any scroll agrees",
            ),
        ),
        ("uground-ac", ("smallest of the elements", "holds the app's name")),
        ("osworld-g", ("polygon", "status")),
        ("aitw-original", ("x2.4", "0.14", "axis", "any text agrees", "status")),
        ("odyssey-v1", ("boxes do not count", "0.14", "at least 0.5", "both stripped")),
        ("agentnetbench", ("0.0141421", "at least 0.8", "any scroll")),
        ("mind2web-element", ("same words",)),
        ("onekey", ("border left out", "equal, as they are", "patterns")),
        ("ui-s1-reward", ("letter for letter, white space around them aside", "both stripped", "released matcher strips it")),
        ("ui-s1-sop", ("UI-S1", "the intended version of ui-s1-sop-released")),
    ],
)
def test_the_words_tell_what_is_special(protocol: str, words: tuple[str, ...]) -> None:
    described = get_protocol(protocol).describe()
    assert [word for word in words if word not in described] == []


def test_protocols_that_judge_differently_are_described_differently() -> None:
    base = get_protocol("guievalkit")
    common = base.rules
    changed = [
        replace(base, rules=replace(common, click=replace(common.click, fallback=0.15))),
        replace(base, rules=replace(common, tap_limit=None)),
        replace(base, rules=replace(common, scroll=ScrollRule("type-only"))),
        replace(base, variants={}),
        replace(base, variants={"aitz": base.variants["androidcontrol"]}),
    ]
    texts = {protocol.judgement() for protocol in [base, *changed]}
    assert len(texts) == len(changed) + 1


def test_figures_and_failures_are_reported_but_not_judged() -> None:
    base = get_protocol("guievalkit")
    changed = [
        replace(base, metrics=base.metrics[:1]),
        replace(base, failure=FailurePolicy()),
        replace(base, metrics=tuple(replace(figure, without=frozenset()) for figure in base.metrics)),
        replace(base, metrics=tuple(replace(figure, average="episodes") for figure in base.metrics)),
    ]
    assert len({protocol.describe() for protocol in [base, *changed]}) == len(changed) + 1
    assert {protocol.judgement() for protocol in [base, *changed]} == {base.judgement()}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Installs a distribution whose entry points are protocols, one good and two not."""
    (tmp_path / "acme_rules.py").write_text(
        "from guieval.evaluation import ClickRule, FailurePolicy, Protocol, StepRules\n"
        "acme = Protocol(name='acme', source='a test', summary='s', rules=StepRules(ClickRule('targets', fallback=0.5)))\n"
        "other = 3\n"
    )
    information = tmp_path / "acme-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(
        "[guieval.protocols]\nacme = acme_rules:acme\nodd = acme_rules:other\ngone = acme_rules:missing\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "acme_rules", raising=False)
    return "acme"


def test_a_third_party_adds_a_protocol_by_entry_point(installed: str) -> None:
    assert list_protocols()[-3:] == ["acme", "gone", "odd"]
    assert get_protocol(installed).rules.click == ClickRule("targets", fallback=0.5)
    assert get_protocol(installed).rules_for("anything").click.fallback == 0.5


def test_an_entry_point_that_is_no_protocol_gives_one_sentence(installed: str) -> None:
    with pytest.raises(UsageError, match="must be a guieval Protocol named 'odd', got 3"):
        get_protocol("odd")
    with pytest.raises(UsageError, match=r"'gone' .acme_rules:missing. cannot be imported"):
        get_protocol("gone")


def test_a_protocol_is_a_value() -> None:
    rules = StepRules(click=ClickRule("targets"))
    one, two = (Protocol(name="n", source="s", summary="t", rules=rules) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)


@pytest.fixture(scope="module")
def steps_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[StepTaskModel]]:
    """The steps of an example of a data set, written and read by one of its loaders."""

    @cache
    def load(dataset: str) -> list[StepTaskModel]:
        loader = next(loader for loader in benchmarks().values() if loader.dataset == dataset)
        folder: Path = tmp_path_factory.mktemp(dataset)
        loader.write_example(folder, episodes=2)
        benchmark = loader(folder)
        return [step for ref in benchmark.index() for step in benchmark.load(ref).steps]

    return load


@every_row("name", list_protocols)
def test_data_sets_and_sample_sets_are_known(name: str) -> None:
    protocol, known = get_protocol(name), {loader.dataset for loader in benchmarks().values()}
    named = {*(protocol.datasets or ()), *protocol.variants, *protocol.sample_sets}
    assert named - known == set()
    for dataset, sample_set in protocol.sample_sets.items():
        assert dataset in get_sample_set(sample_set).datasets
        assert protocol.applies_to(dataset)


@every_row(
    ("name", "key"),
    lambda: sorted({(name, key) for name in list_protocols() for figure in get_protocol(name).metrics for key in figure.keys}),
)
def test_every_step_has_the_labels_that_form_cells(steps_of: Callable[[str], list[StepTaskModel]], name: str, key: str) -> None:
    datasets = get_protocol(name).datasets
    assert datasets  # averages over a label make sense only where it is known which data has it
    for dataset in datasets:
        assert all(step.groups.get(key) or (key == "subset" and step.subset) for step in steps_of(dataset)), dataset


@every_row("name", [each.name for table in (aitz, gui_odyssey, grounding, desktop_web) for each in table.PROTOCOLS])
def test_the_label_itself_is_right(steps_of: Callable[[str], list[StepTaskModel]], name: str) -> None:
    evaluator = ActionEvaluator(name)
    for dataset in evaluator.protocol.datasets or ():
        for step in steps_of(dataset):
            if name != "coat-official" or step.action.type != "CLICK":  # it compares clicks with the screen's corner
                assert evaluator.evaluate(step, step.action).exact_match, (dataset, step.action)


@every_row("name", lambda: [name for name in list_protocols() if get_protocol(name).mends])
def test_what_is_mended_is_a_protocol_for_the_same_data(name: str) -> None:
    intended = get_protocol(name)
    assert intended.mends is not None
    kept = get_protocol(intended.mends)
    assert kept.mends is None
    assert kept.datasets == intended.datasets
    assert (kept.judgement(), kept.metrics, kept.failure) != (intended.judgement(), intended.metrics, intended.failure)
