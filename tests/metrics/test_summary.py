"""Every figure against small episodes computed by hand, and the properties that keep denominators honest."""

from __future__ import annotations

import gzip
import json
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guieval.actions import Action, ActionSpace, Click, LongPress, Open, Point, Press, Scroll, Type, Unsupported
from guieval.history.modes import Mode, get_mode
from guieval.metrics import RunSummary
from guieval.metrics.summary import WITHOUT_OPEN
from guieval.steps import VERDICTS, Plan, Sample, StepOutcome, StepRecord, Usage, Verdict
from tests.made_runs import key, step
from tests.metrics.made_columns import made_ledger, summarise, whole
from tests.rows import every_row

OFFLINE, SOP = get_mode("offline"), get_mode("sop")
SPACE = ActionSpace()
CLICK = Click(point=Point(500.0, 500.0))
OPEN = Open(app="Maps")


# How a planned step ended: its verdict and, for a wrong answer, whether the type matched; None where there is no record.
End: TypeAlias = tuple[Verdict, bool] | None


def outcome(verdict: Verdict, *, typed: bool = False, distance: float | None = None) -> StepOutcome:
    right = verdict == "right"
    return StepOutcome(verdict=verdict, type_match=right or typed, exact_match=right, distance=distance)


def record(
    episode: str,
    index: int,
    length: int,
    verdict: Verdict = "right",
    *,
    typed: bool = False,
    reference: Action = CLICK,
    message: Action | None = None,
    groups: Mapping[str, str] | None = None,
) -> StepRecord:
    task = step(reference, episode=episode, index=index, length=length, groups=dict(groups or {}))
    if message is None and verdict in ("right", "wrong"):
        message = reference
    if message is None and verdict == "unsupported":
        message = Unsupported(name="key_combo")
    return StepRecord(task=task, samples=(Sample(action=message, outcome=outcome(verdict, typed=typed)),))


def episode(name: str, *ends: End | Verdict, reference: Action = CLICK) -> list[StepRecord]:
    """Records of one episode; ``None`` leaves a step without a record, a pair says whether the type matched."""
    pairs = [(end, False) if end is None or isinstance(end, str) else end for end in ends]
    return [
        record(name, index, len(ends), verdict, typed=typed, reference=reference)
        for index, (verdict, typed) in enumerate(pairs)
        if verdict is not None
    ]


def offline(records: Iterable[StepRecord], plan: Mapping[str, int]) -> RunSummary:
    return summarise(records, {key(name): range(length) for name, length in plan.items()}, OFFLINE, SPACE, SPACE)


def sop(records: Iterable[StepRecord], plan: Mapping[str, int]) -> RunSummary:
    return summarise(records, {key(name): range(length) for name, length in plan.items()}, SOP, SPACE, SPACE)


def test_step_and_episode_figures_of_a_complete_run() -> None:
    records = episode("a", "right", "right", ("wrong", True), "right") + episode("b", "right", "right")
    records += episode("c", "wrong")
    summary = offline(records, {"a": 4, "b": 2, "c": 1})
    assert (summary.type_match.count, summary.type_match.n, summary.type_match.value) == (6, 7, 6 / 7)
    assert (summary.exact_match.count, summary.exact_match.n, summary.exact_match.value) == (5, 7, 5 / 7)
    assert summary.progress.value == pytest.approx((2 / 4 + 1 + 0) / 3)
    assert summary.progress.n == 3
    assert (summary.metrics["step-weighted progress"].count, summary.metrics["step-weighted progress"].n) == (4, 7)
    assert (summary.success_rate.count, summary.success_rate.n) == (1, 3)
    assert summary.complete and summary.incomplete == 0 and summary.exact_match.upper is None
    assert "PG" not in summary.metrics


def test_unparseable_and_unsupported_are_wrong_and_outside_coverage() -> None:
    summary = offline(episode("a", "right", ("wrong", True), "unparseable", "unsupported"), {"a": 4})
    assert summary.exact_match.value == 1 / 4
    assert (summary.coverage.count, summary.coverage.n) == (2, 4)
    assert not summary.coverage_ok
    assert (summary.metrics["covered exact match"].count, summary.metrics["covered exact match"].n) == (1, 2)
    assert (summary.metrics["covered type match"].count, summary.metrics["covered type match"].n) == (2, 2)
    assert [getattr(summary.verdicts, name) for name in VERDICTS] == [1, 1, 1, 1, 0]


@every_row(("outside", "enough"), [(5, True), (6, False)])
def test_coverage_is_enough_from_95_percent_on(outside: int, enough: bool) -> None:
    ends: list[Verdict] = ["unparseable" if index < outside else "right" for index in range(100)]
    assert offline(episode("a", *ends), {"a": 100}).coverage_ok is enough


def test_coverage_asks_both_action_spaces() -> None:
    records = [
        record("a", 0, 3, "wrong", message=Press(button="RECENT")),
        record("a", 1, 3, "wrong", message=Type(text="x")),
        record("a", 2, 3),
    ]
    plan = {key("a"): range(3)}
    mute = ActionSpace(types=frozenset({"CLICK", "PRESS"}), buttons=frozenset({"RECENT"}))
    assert summarise(records, plan, OFFLINE, SPACE, SPACE).coverage.count == 2
    assert summarise(records, plan, OFFLINE, mute, SPACE).coverage.count == 1
    assert summarise(records, plan, OFFLINE, SPACE, mute).coverage.count == 1
    assert summarise(records, plan, OFFLINE, mute, mute).coverage.count == 2


def test_failed_and_missing_steps_stay_in_every_denominator() -> None:
    records = episode("a", "right", "infrastructure_failure", "right", "right") + episode("b", "right", None, None)
    summary = offline(records, {"a": 4, "b": 3, "c": 1})
    assert not summary.complete
    assert (summary.incomplete, summary.incomplete_episodes) == (4, 3)
    assert (summary.verdicts.infrastructure_failure, summary.verdicts.not_run) == (1, 3)
    assert (summary.exact_match.count, summary.exact_match.n, summary.exact_match.upper) == (4, 8, 1.0)
    assert summary.progress.value == pytest.approx((1 / 4 + 1 / 3 + 0) / 3)
    assert summary.progress.upper == 1.0
    assert (summary.metrics["step-weighted progress"].count, summary.metrics["step-weighted progress"].n) == (2, 8)
    assert (summary.success_rate.count, summary.success_rate.n, summary.success_rate.upper) == (0, 3, 1.0)
    assert summary.coverage.n == 4
    assert summary.by_action_type["CLICK"].n == 5  # a step never run has no known label


def test_upper_bounds_stop_at_a_measured_mismatch() -> None:
    summary = offline(episode("a", "right", "infrastructure_failure", "right", "wrong", "right"), {"a": 5})
    assert summary.metrics["step-weighted progress"].count == 1
    assert summary.metrics["step-weighted progress"].upper == 3 / 5
    assert summary.success_rate.value == 0.0 and summary.success_rate.upper is None
    trailing = offline(episode("a", "right", "wrong", "infrastructure_failure"), {"a": 3})
    assert trailing.progress.upper is None
    assert (trailing.exact_match.value, trailing.exact_match.upper) == (1 / 3, 2 / 3)


def test_a_dead_server_cannot_raise_a_score() -> None:
    alive = offline(episode("a", "right", "wrong", "wrong", "wrong"), {"a": 4})
    dead = offline(episode("a", "right", "infrastructure_failure", None, None), {"a": 4})
    assert dead.exact_match.value == alive.exact_match.value == 1 / 4
    assert alive.complete and not dead.complete


def test_sop_figures_and_steps_not_reached() -> None:
    records = episode("a", "right", ("wrong", True), None, None) + episode("b", "right", "right")
    records += episode("c", "unparseable", None, None)
    summary = sop(records, {"a": 4, "b": 2, "c": 3})
    assert summary.metrics["PG"].value == pytest.approx((1 / 4 + 1 + 0) / 3)
    assert (summary.metrics["TSR"].count, summary.metrics["TSR"].n) == (1, 3)
    assert summary.metrics["score"].value == pytest.approx((5 / 12 + 1 / 3) / 2)
    assert summary.metrics["score"].n == 3
    assert (summary.verdicts.not_reached, summary.verdicts.not_run, summary.verdicts.planned) == (4, 0, 9)
    assert summary.complete
    assert (summary.exact_match.count, summary.exact_match.n) == (3, 5)
    assert (summary.type_match.count, summary.type_match.n) == (4, 5)


def test_steps_after_a_failure_are_not_run_rather_than_not_reached() -> None:
    summary = sop(episode("a", "right", "infrastructure_failure", None, None), {"a": 4})
    verdicts = summary.verdicts
    assert (verdicts.infrastructure_failure, verdicts.not_run, verdicts.not_reached) == (1, 2, 0)
    assert (summary.metrics["PG"].value, summary.metrics["PG"].upper) == (1 / 4, 1.0)
    assert (summary.metrics["TSR"].value, summary.metrics["TSR"].upper) == (0.0, 1.0)
    assert (summary.metrics["score"].value, summary.metrics["score"].upper) == (1 / 8, 1.0)


def test_scoring_again_under_a_stricter_protocol_ends_the_episode_earlier() -> None:
    ledger = made_ledger({key("a"): range(4)}, SOP)
    for one in episode("a", "right", "right", "wrong", None):
        stricter = outcome("wrong", typed=True) if one.task.step_index == 1 else one.sample.outcome
        ledger.add(one.task, one.samples, stricter)
    summary = whole(ledger)
    assert (summary.verdicts.right, summary.verdicts.wrong, summary.verdicts.not_reached) == (1, 1, 2)
    assert summary.progress.value == 1 / 4


def test_scoring_again_under_a_looser_protocol_shows_the_steps_never_asked() -> None:
    ledger = made_ledger({key("a"): range(4)}, SOP)
    for one in episode("a", "right", "wrong", None, None):
        ledger.add(one.task, one.samples, outcome("right"))
    summary = whole(ledger)
    assert (summary.verdicts.right, summary.verdicts.not_run, summary.complete) == (2, 2, False)
    assert (summary.metrics["PG"].value, summary.metrics["PG"].upper) == (2 / 4, 1.0)


def test_the_last_finished_record_of_a_step_counts() -> None:
    ledger = made_ledger({key("a"): range(1)}, OFFLINE)
    for verdict in ("infrastructure_failure", "wrong", "right", "infrastructure_failure"):
        ledger.take(record("a", 0, 1, verdict))
    assert len(ledger) == 1
    assert whole(ledger).exact_match.value == 1.0
    ledger.take(record("a", 0, 1, "wrong"))
    assert whole(ledger).exact_match.value == 0.0


def test_a_record_with_a_failed_further_sample_yields_to_a_finished_one() -> None:
    whole = record("a", 0, 1, "right")
    failed = Sample(outcome=outcome("infrastructure_failure"))
    partial = record("a", 0, 1, "wrong")
    partial = partial.model_copy(update={"samples": (*partial.samples, failed)})
    assert offline([whole, partial], {"a": 1}).exact_match.value == 1.0
    assert offline([partial], {"a": 1}).complete
    assert offline([partial, record("a", 0, 1, "infrastructure_failure")], {"a": 1}).verdicts.wrong == 1


def test_figures_without_open_steps() -> None:
    records = [
        record("a", 0, 3, "wrong", reference=OPEN),
        record("a", 1, 3, "right"),
        record("a", 2, 3, "wrong", typed=True),
        record("b", 0, 2, "unsupported", reference=OPEN),
        record("b", 1, 2, "right"),
        record("c", 0, 1, "right", reference=OPEN),
    ]
    summary = offline(records, {"a": 3, "b": 2, "c": 1})
    assert summary.exact_match.value == 3 / 6
    left = {name.removesuffix(WITHOUT_OPEN): each for name, each in summary.metrics.items() if name.endswith(WITHOUT_OPEN)}
    counts = {"exact match": (2, 3), "type match": (3, 3), "coverage": (3, 3), "covered exact match": (2, 3)}
    # an episode that opens with OPEN keeps its prefix, and one of nothing but OPEN is skipped
    counts |= {"step-weighted progress": (2, 3), "success rate": (1, 2)}
    assert {name: (left[name].count, left[name].n) for name in counts} == counts
    assert left["progress"].value == pytest.approx((1 / 2 + 1) / 2)


def test_sop_has_no_episode_figures_without_open() -> None:
    summary = sop([record("a", 0, 3, "wrong", reference=OPEN)], {"a": 3})
    assert "progress without OPEN" not in summary.metrics and "success rate without OPEN" not in summary.metrics
    exact = summary.metrics["exact match without OPEN"]
    assert (exact.value, exact.n) == (None, 0)


def test_a_failed_request_stays_out_of_the_figures_without_open_only_if_it_was_an_open_step() -> None:
    records = [
        record("a", 0, 3, "infrastructure_failure", reference=OPEN),
        record("a", 1, 3, "infrastructure_failure"),
        record("a", 2, 3, "right"),
    ]
    left = offline(records, {"a": 3}).metrics["exact match without OPEN"]
    assert (left.count, left.n, left.upper) == (1, 2, 1.0)


def test_a_match_outside_the_action_spaces_counts_in_the_main_figure_only() -> None:
    summary = offline(
        [record("a", 0, 1, "wrong", typed=True, reference=Press(button="BACK"), message=Press(button="RECENT"))], {"a": 1}
    )
    assert (summary.type_match.count, summary.type_match.n) == (1, 1)
    assert (summary.metrics["covered type match"].count, summary.metrics["covered type match"].n) == (0, 0)


def test_a_failed_request_never_counts_as_a_match_whatever_its_outcome() -> None:
    ledger, one = made_ledger({key("a"): range(1)}, OFFLINE), record("a", 0, 1)
    ledger.add(one.task, one.samples, StepOutcome(verdict="infrastructure_failure", type_match=True, exact_match=True))
    summary = whole(ledger)
    assert (summary.exact_match.value, summary.type_match.value, summary.success_rate.value) == (0.0, 0.0, 0.0)


def test_means_are_the_same_to_the_last_bit_in_any_order() -> None:
    prefixes = {"a": 1, "b": 2, "c": 3}
    records = [record(name, index, 10) for name, prefix in prefixes.items() for index in range(prefix)]
    assert 1 / 10 + 2 / 10 + 3 / 10 != 3 / 10 + 2 / 10 + 1 / 10
    there, back = (offline(records, dict.fromkeys(names, 10)) for names in ("abc", "cba"))
    assert there.progress == back.progress


def test_a_step_never_run_stays_in_the_figures_without_open() -> None:
    left = offline([record("a", 0, 3, reference=OPEN), record("a", 1, 3)], {"a": 3}).metrics
    for name in ("exact match without OPEN", "step-weighted progress without OPEN"):
        assert (left[name].count, left[name].n, left[name].upper) == (1, 2, 1.0)
    success = left["success rate without OPEN"]
    assert (success.value, success.upper) == (0.0, 1.0)


def test_scores_by_reference_action_type() -> None:
    scroll = Scroll(point=Point(500.0, 500.0), direction="up")
    records = [
        record("a", 0, 4, "right", reference=scroll),
        record("a", 1, 4, "wrong", typed=True, reference=scroll),
        record("a", 2, 4, "infrastructure_failure", reference=scroll),
        record("a", 3, 4, "right"),
    ]
    by_type = offline(records, {"a": 4}).by_action_type
    assert list(by_type) == ["CLICK", "SCROLL"]
    assert by_type["SCROLL"].n == 3
    assert (by_type["SCROLL"].type_match.value, by_type["SCROLL"].exact_match.value) == (2 / 3, 1 / 3)
    assert by_type["SCROLL"].exact_match.upper == 2 / 3


def test_groups_apart_crossed_and_averaged_over_cells() -> None:
    cells: list[tuple[str, str, Sequence[Verdict]]] = [
        ("mobile", "text", ["right", "right", "right", "wrong"]),
        ("mobile", "icon", ["right", "wrong"]),
        ("web", "text", ["wrong"]),
        ("web", "icon", ["right"]),
    ]
    records = [
        record(f"{platform}-{element}-{number}", 0, 1, verdict, groups={"platform": platform, "element": element})
        for platform, element, verdicts in cells
        for number, verdict in enumerate(verdicts)
    ]
    summary = offline(records, {one.task.episode_id: 1 for one in records})
    tables = {table.keys: table for table in summary.groups}
    assert list(tables) == [("element",), ("platform",), ("element", "platform")]
    element = {cell.labels: cell.exact_match for cell in tables[("element",)].cells}
    assert (element[("icon",)].count, element[("icon",)].n) == (2, 3)
    assert (element[("text",)].count, element[("text",)].n) == (3, 5)
    assert tables[("element",)].mean_exact_match.value == pytest.approx((2 / 3 + 3 / 5) / 2)
    crossed = tables[("element", "platform")]
    assert {cell.labels: cell.exact_match.value for cell in crossed.cells} == {
        ("icon", "mobile"): 1 / 2,
        ("icon", "web"): 1.0,
        ("text", "mobile"): 3 / 4,
        ("text", "web"): 0.0,
    }
    assert (crossed.mean_exact_match.value, crossed.mean_exact_match.n) == ((1 / 2 + 1 + 3 / 4 + 0) / 4, 4)
    assert summary.exact_match.value == 5 / 8


def test_records_outside_the_plan_count_nowhere_but_are_reported() -> None:
    records = episode("a", "right", "wrong") + episode("other", "right", "right", "right")
    summary = offline(records, {"a": 1})
    assert (summary.exact_match.count, summary.exact_match.n, summary.unplanned) == (1, 1, 4)


def test_diagnostics() -> None:
    def with_numbers(one: StepRecord, distance: float | None, similarity: float | None, seconds: float) -> StepRecord:
        scored = one.sample.outcome.model_copy(update={"distance": distance, "text_similarity": similarity})
        usage = Usage(prompt_tokens=100, completion_tokens=None if similarity else 7)
        sample = one.sample.model_copy(update={"outcome": scored, "seconds": seconds, "usage": usage})
        return one.model_copy(update={"samples": (sample,)})

    records = [
        with_numbers(record("a", 0, 6), 10.0, None, 1.0),
        with_numbers(record("a", 1, 6, "wrong"), 200.0, None, 2.0),
        with_numbers(record("a", 2, 6, "wrong"), 40.0, None, 6.0),
        with_numbers(record("a", 3, 6, reference=Type(text="x")), None, 0.5, 3.0),
        with_numbers(record("a", 4, 6, "infrastructure_failure"), None, None, 600.0),
        with_numbers(record("a", 5, 6, reference=LongPress(point=Point(1.0, 2.0))), 999.0, None, 3.0),
    ]
    metrics = offline(records, {"a": 6}).metrics
    expected = {"median click distance": (40.0, 3), "mean text similarity": (0.5, 1), "mean seconds to answer": (3.0, 5)}
    expected |= {"prompt tokens": (600, 6), "completion tokens": (35, 5)}
    assert {name: (metrics[name].value, metrics[name].n) for name in expected} == expected
    assert metrics["median click distance"].unit == "thousandths of the screen"  # never per cent


def test_nothing_planned_gives_no_figures_instead_of_zeros() -> None:
    summary = sop([], {})
    assert summary.exact_match.value is None and summary.coverage.value is None and not summary.coverage_ok
    assert summary.metrics["score"].value is None
    assert summary.complete


def test_an_episode_without_steps_cannot_be_planned() -> None:
    with pytest.raises(ValueError, match="made-up/a is planned without steps"):
        offline([], {"a": 0})


ENDS: st.SearchStrategy[End] = st.one_of(st.none(), st.tuples(st.sampled_from(VERDICTS), st.booleans()))
EPISODES = st.lists(st.lists(ENDS, min_size=1, max_size=7), max_size=6)
MODES = st.sampled_from([OFFLINE, SOP])
REFERENCES: tuple[Action, ...] = (CLICK, OPEN, Type(text="x"))


def journal(episodes: Sequence[Sequence[End]]) -> tuple[list[StepRecord], Plan]:
    records = [
        record(
            str(number),
            index,
            len(ends),
            end[0],
            typed=end[1] and end[0] == "wrong",
            reference=REFERENCES[(number + index) % 3],
            groups={"parity": "odd" if number % 2 else "even", "place": "first" if index == 0 else "later"},
        )
        for number, ends in enumerate(episodes)
        for index, end in enumerate(ends)
        if end is not None
    ]
    return records, {key(str(number)): range(len(ends)) for number, ends in enumerate(episodes)}


@given(EPISODES, MODES, st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_order_and_duplicates_do_not_matter(episodes: list[list[End]], mode: Mode, rng: random.Random) -> None:
    records, plan = journal(episodes)
    straight = summarise(records, plan, mode, SPACE, SPACE)
    mixed = records + [one for one in records if rng.random() < 0.5]
    rng.shuffle(mixed)
    turned = dict(rng.sample(sorted(plan.items()), len(plan)))
    assert summarise(mixed, turned, mode, SPACE, SPACE) == straight
    assert RunSummary.model_validate_json(straight.model_dump_json()) == straight


@given(EPISODES, MODES)
@settings(max_examples=50)
def test_every_planned_step_is_counted_once_and_figures_are_ordered(episodes: list[list[End]], mode: Mode) -> None:
    records, plan = journal(episodes)
    summary = summarise(records, plan, mode, SPACE, SPACE)
    verdicts = summary.verdicts
    assert verdicts.measured + verdicts.unmeasured + verdicts.not_reached == verdicts.planned == sum(map(len, plan.values()))
    assert summary.exact_match.n == summary.type_match.n == verdicts.planned - verdicts.not_reached
    assert summary.exact_match.count == verdicts.right <= summary.type_match.count
    assert sum(row.n for row in summary.by_action_type.values()) == summary.exact_match.n - verdicts.not_run
    for table in summary.groups:
        assert sum(cell.n for cell in table.cells) == summary.exact_match.n - verdicts.not_run
    assert summary.success_rate.count <= summary.metrics["step-weighted progress"].count <= verdicts.right
    for rate in (summary.type_match, summary.exact_match, summary.metrics["step-weighted progress"], summary.success_rate):
        if rate.value is not None:
            assert 0.0 <= rate.value <= (rate.value if rate.upper is None else rate.upper) <= 1.0
        if rate.upper is not None:
            assert not summary.complete


@given(EPISODES)
@settings(max_examples=40)
def test_stopping_changes_no_prefix(episodes: list[list[End]]) -> None:
    records, plan = journal(episodes)
    never, stopped = summarise(records, plan, OFFLINE, SPACE, SPACE), summarise(records, plan, SOP, SPACE, SPACE)
    for sop, name in (("PG", "progress"), ("TSR", "success rate"), ("step-weighted progress", "step-weighted progress")):
        found = [stopped.metrics[sop], stopped.metrics[name], never.metrics[name]]
        assert len({(each.value, each.n, each.upper) for each in found}) == 1


@given(EPISODES)
@settings(max_examples=40)
def test_finishing_a_run_lands_within_its_bounds(episodes: list[list[End]]) -> None:
    records, plan = journal(episodes)
    before = summarise(records, plan, OFFLINE, SPACE, SPACE)
    fills: tuple[Verdict, ...] = ("right", "wrong")
    for verdict in fills:
        filled: list[list[End]] = [
            [(verdict, False) if end is None or end[0] == "infrastructure_failure" else end for end in ends]
            for ends in episodes
        ]
        after = summarise(journal(filled)[0], plan, OFFLINE, SPACE, SPACE)
        assert after.complete
        for name in ("exact match", "type match", "step-weighted progress", "success rate", "progress"):
            old, new = before.metrics[name], after.metrics[name]
            bound = old.upper if verdict == "right" and old.upper is not None else old.value
            assert new.value == bound if bound is None else new.value == pytest.approx(bound)


@every_row("probability", [0.5, 0.9])
def test_simulated_sop_agrees_with_its_closed_form(shared_data: Path, probability: float) -> None:
    """Steps right independently with probability p: E[s/t] = (p + ... + p^t) / t and P(s = t) = p^t, summed over episodes."""
    file = shared_data / "ui_s1" / "android_control_evaluation_std.jsonl.gz"
    if not file.is_file():
        pytest.skip(f"no AndroidControl episodes at {file}")
    with gzip.open(file) as lines:
        lengths = [len(json.loads(line)["steps"]) for line in lines]
    assert (len(lengths), sum(lengths)) == (1543, 8444)
    rng = random.Random(20250917)
    ledger = made_ledger({key(str(number)): range(length) for number, length in enumerate(lengths)}, SOP)
    for number, length in enumerate(lengths):
        for index in range(length):
            right = rng.random() < probability
            ledger.take(record(str(number), index, length, "right" if right else "wrong"))
            if not right:
                break
    summary = whole(ledger)
    assert summary.complete

    mean = variance = rate = rate_variance = 0.0
    for length in lengths:
        reach = [probability**k for k in range(1, length + 1)]  # P(s >= k)
        expected = sum(reach) / length
        mean += expected
        variance += sum((2 * k - 1) * p for k, p in enumerate(reach, 1)) / length**2 - expected**2
        rate += reach[-1]
        rate_variance += reach[-1] * (1 - reach[-1])
    n = len(lengths)
    assert summary.metrics["PG"].n == summary.metrics["TSR"].n == n
    assert summary.metrics["PG"].value == pytest.approx(mean / n, abs=4 * math.sqrt(variance) / n)
    assert summary.metrics["TSR"].value == pytest.approx(rate / n, abs=4 * math.sqrt(rate_variance) / n)


def test_an_episode_is_the_sequence_of_the_steps_that_count() -> None:
    """Steps 0 right, 1 wrong (does not count), 2 right, 3 wrong: a prefix of 2 of the 3 that count."""
    records = episode("a", "right", "wrong", "right", "wrong") + episode("b", "wrong", "right")
    plan: Plan = {key("a"): (0, 2, 3), key("b"): (1,)}
    summary = summarise(records, plan, OFFLINE, SPACE, SPACE)
    assert (summary.verdicts.planned, summary.verdicts.right, summary.verdicts.wrong) == (4, 3, 1)
    assert (summary.metrics["step-weighted progress"].count, summary.metrics["step-weighted progress"].n) == (3, 4)
    assert summary.progress.value == pytest.approx((2 / 3 + 1) / 2)
    assert (summary.success_rate.count, summary.success_rate.n) == (1, 2)
    assert summary.unplanned == 2  # steps a#1 and b#0
    stopped = summarise(records, plan, SOP, SPACE, SPACE)
    assert stopped.metrics["PG"].value == pytest.approx((2 / 3 + 1) / 2)
    assert stopped.verdicts.not_reached == 0


def test_a_step_that_counts_and_has_no_record_stays_in_every_denominator() -> None:
    summary = summarise(episode("a", "right", "right", None), {key("a"): (1, 2)}, OFFLINE, SPACE, SPACE)
    assert (summary.exact_match.count, summary.exact_match.n, summary.verdicts.not_run) == (1, 2, 1)
    assert not summary.complete and summary.exact_match.upper == 1.0


def test_a_part_of_a_run_does_not_call_the_rest_unplanned() -> None:
    ledger = made_ledger({key("a"): range(2), key("b"): range(1)}, OFFLINE)
    for one in episode("a", "right", "wrong", "right") + episode("b", "right"):
        ledger.take(one)
    assert whole(ledger, {key("a"): (0,)}).unplanned == 1  # a#2 was never planned
