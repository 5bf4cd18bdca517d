"""Comparing two runs: differences by hand, flips, every reason not to compare, and labels that differ."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Boxes, Press, Scroll
from guieval.errors import UsageError
from guieval.journal import MANIFEST, RunFolder
from guieval.journal.repeats import Repeats
from guieval.metrics.paired import turned
from guieval.models import Request
from guieval.reports.campaign import board_of_campaign, comparison_table
from guieval.reports.comparison import Compared, compare_runs, flips, write_flips
from guieval.reports.comparison_formats import compare_json, headings
from guieval.reports.leaderboards.leaderboard import leaderboard
from guieval.steps import Episode, StepTaskModel
from tests.command_line import CommandLine
from tests.json_values import read_json
from tests.reports.scripted_runs import EPISODES, HOME, edited, made_run, named
from tests.rows import every_row
from tests.scripted import ACTIONS, CLICK, ScriptedEngine, make_episode, reply_with, run_scripted


def exact(metrics: tuple[Compared, ...]) -> Compared:
    """Exact match over all steps."""
    return next(each for each in metrics if each.name == "exact match")


def test_differences_flips_and_mcnemar_by_hand(tmp_path: Path) -> None:
    """A misses step 0 of 6 episodes, B step 1 of the first of them: 5 flips to B beside 1 step that A alone has."""
    one = made_run(tmp_path / "a", [(name, 0) for name in EPISODES[:6]])
    other = made_run(tmp_path / "b", [(EPISODES[0], 0), (EPISODES[0], 1)])
    found = compare_runs(one, other, ["aitw-original"])
    assert found.unlike == ()
    difference = exact(found.metrics)
    assert (difference.first.count, difference.second.count, difference.first.n) == (42, 46, 48)
    assert difference.difference.value == pytest.approx(4 / 48)
    interval = difference.difference.interval
    assert interval is not None and interval.low < 4 / 48 < interval.high
    assert difference.smallest is not None and difference.smallest > 0
    table = found.exact["aitw-original"]
    assert (table.only_first, table.only_second, table.both, table.neither) == (1, 5, 41, 1)
    assert table.p_value == pytest.approx(2 * (1 + 6) / 64)  # binomial: at most 1 of 6, two-sided

    flipped = list(flips(found))
    rights = [(each.key.episode_id, each.key.step_index, each.now_right) for each in flipped]
    assert rights == [(EPISODES[0], 1, False), *((name, 0, True) for name in EPISODES[1:6])]
    last = flipped[-1]
    assert (last.reference, last.first, last.second) == (CLICK, HOME, CLICK)
    assert last.first_reason and last.second_reason and last.first_reason != last.second_reason


def test_b_minus_a_turns_with_the_order(tmp_path: Path) -> None:
    one = made_run(tmp_path / "a", [(name, 2) for name in EPISODES[3:9]])
    other = made_run(tmp_path / "b", [(EPISODES[0], 3)])
    there, back = compare_runs(one, other, ["all"]), compare_runs(other, one, ["all"])
    assert len(there.metrics) == len(back.metrics) > 5
    for first, second in zip(there.metrics, back.metrics, strict=True):
        assert (first.protocol, first.title) == (second.protocol, second.title)
        assert first.difference == turned(second.difference) and first.smallest == second.smallest


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_flips_are_written_with_both_answers_and_reasons(tmp_path: Path, ending: str) -> None:
    """And the name of an episode is no formula in a spreadsheet."""
    name, shown = "=1+1", "'=1+1" if ending == "csv" else "=1+1"
    one, other = (made_run(tmp_path / side, missed, episodes=[name]) for side, missed in (("a", [(name, 1)]), ("b", [])))
    file = tmp_path / f"flips.{ending}"
    write_flips(list(flips(compare_runs(one, other))), file)
    text = file.read_text(encoding="utf-8")
    (line,) = list(csv.DictReader(text.splitlines())) if ending == "csv" else map(json.loads, text.splitlines())
    assert (line["benchmark"], line["episode_id"], int(line["step_index"]), line["right"]) == ("scripted", shown, 1, "second")
    actions = {name: line[name] if ending == "jsonl" else read_json(line[name]) for name in ("reference", "first", "second")}
    assert actions["first"] == HOME.model_dump(mode="json")
    assert actions["second"] == actions["reference"] == {"type": "TYPE", "text": "tea"}
    assert line["first_reason"] and line["second_reason"]


def other_benchmark(manifest: dict[str, Any]) -> None:
    manifest["benchmark"]["name"] = "demo"


def with_overlay(manifest: dict[str, Any]) -> None:
    manifest["overlay"] = {"sha256": "0123456789abcdef", "file": "more.jsonl", "steps": 1, "actions": 1}


@every_row(
    ("settings", "message"),
    [
        ({"episodes": EPISODES[:7]}, r"the steps differ \(20 steps only in the first, e.g. scripted/e07#0, 28 in both\)"),
        ({"rewrite": other_benchmark}, "the benchmark differs"),
        ({"rewrite": with_overlay}, "the overlay of accepted actions differs"),
        ({"protocol": "aitw-original"}, r"the protocol differs \('guievalkit' and 'aitw-original', --protocol names one for"),
        ({"mode": "sop"}, "the modes 'offline' and 'sop' do not reach the same steps"),
    ],
)
def test_unlike_runs_are_refused_and_compared_anyway(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    one, other = made_run(tmp_path / "a"), made_run(tmp_path / "b", [("e00", 1)], **settings)
    with pytest.raises(UsageError, match=message):
        compare_runs(one, other)
    assert len(compare_runs(one, other, anyway=True).unlike) == 1


def test_every_reason_is_named_at_once_and_runs_without_a_common_step_cannot_be_compared(tmp_path: Path) -> None:
    one = made_run(tmp_path / "a")
    other = made_run(tmp_path / "b", episodes=EPISODES[2:], mode="sop", rewrite=with_overlay)
    with pytest.raises(UsageError, match=r"overlay.*modes.*steps differ \(8 steps only in the first"):
        compare_runs(one, other)
    one, other = made_run(tmp_path / "c", episodes=EPISODES[:3]), made_run(tmp_path / "d", episodes=EPISODES[3:])
    with pytest.raises(UsageError, match=r"'.*' and '.*' have no step in common"):
        compare_runs(one, other, anyway=True)


def test_shared_steps_are_what_is_compared_anyway(tmp_path: Path) -> None:
    """Of 12 and 7 episodes 7 are shared; A misses a step that only it has, which then counts nowhere."""
    one, other = made_run(tmp_path / "a", [("e11", 0)]), made_run(tmp_path / "b", [("e00", 1)], episodes=EPISODES[:7])
    found = compare_runs(one, other, anyway=True)
    difference = exact(compare_runs(one, other, ["aitw-original"], anyway=True).metrics)
    assert (difference.first.count, difference.second.count, difference.first.n) == (28, 27, 28)
    assert any("28 steps of 7 episodes" in note for note in found.notes)


def test_modes_may_differ_where_both_reach_every_step(tmp_path: Path) -> None:
    one, other = made_run(tmp_path / "a"), made_run(tmp_path / "b", [("e00", 1)], mode="soeval")
    found = compare_runs(one, other)
    assert found.unlike == ()
    assert any("modes differ (offline and soeval)" in note for note in found.notes)


def test_steps_of_modes_that_stop_are_compared_where_both_came(tmp_path: Path) -> None:
    """A stops after step 1 of e00 (2 reached), B after step 2 (3 reached): 2 + 11 x 4 are shared; progress is over all."""
    one = made_run(tmp_path / "a", [("e00", 1)], mode="sop", protocol="ui-s1-sop")
    other = made_run(tmp_path / "b", [("e00", 3), ("e00", 2)], mode="sop", protocol="ui-s1-sop")
    figures = {each.title: each for each in compare_runs(one, other).metrics}
    whole, shared = figures["exact match"], figures["exact match (shared)"]
    assert (whole.first.n, whole.second.n, whole.difference.value) == (46, 47, None)  # over what each run reached
    assert (shared.first.count, shared.second.count, shared.first.n) == (45, 46, 46)
    assert not figures["PG"].shared
    assert figures["PG"].difference.value == pytest.approx((2 / 4 - 1 / 4) / 12)


def test_a_run_stopped_by_another_protocol_is_reported_as_a_lower_bound(tmp_path: Path) -> None:
    """The wrong scroll direction ends the episode under guievalkit, and would not under ui-s1-sop."""

    def policy(request: Request) -> str:
        action = request.task.action
        return reply_with(Scroll(point=action.point, direction="down") if isinstance(action, Scroll) else action)

    for name in ("a", "b"):
        run_scripted(tmp_path / name, [make_episode("e00", ACTIONS)], ScriptedEngine(policy), mode="sop")
    found = compare_runs(tmp_path / "a", tmp_path / "b", ["ui-s1-sop"])
    assert sum("stopped by guievalkit: 1 step that ui-s1-sop would have reached" in note for note in found.notes) == 2
    assert not any("lower bounds" in note for note in compare_runs(tmp_path / "a", tmp_path / "b").notes)


def without(run: Path, *episodes: str) -> Path:
    """The run without the records of some episodes."""
    journal = run / "steps.jsonl"
    lines = [line for line in journal.open() if not any(f'"episode_id":"{name}"' in line for name in episodes)]
    journal.write_text("".join(lines))
    return run


def test_steps_that_a_run_has_no_answer_to_speak_for_neither(tmp_path: Path) -> None:
    """A misses a step of e00 and one of e03, B one of e01; B has no answer in e03, which then counts for neither."""
    one = made_run(tmp_path / "a", [("e00", 1), ("e03", 0)])
    other = without(made_run(tmp_path / "b", [("e01", 1)]), "e03")
    for first, second, letter in ((one, other, "B"), (other, one, "A")):
        found = compare_runs(first, second, ["ui-s1-sop"])
        assert f"{letter}: incomplete: 4 of 48 steps have no response; `guieval run --resume {other}` asks again" in found.notes
        figures = {each.title: each for each in found.metrics}
        whole, shared = figures["exact match"], figures["exact match (shared)"]
        assert {whole.first.missing, whole.second.missing} == {0, 4} and whole.difference.value is None
        assert (shared.first.count, shared.second.count) == (43, 43)
        assert shared.first.n == shared.second.n == 44
        progress = figures["PG (shared)"]
        assert progress.first.n == progress.second.n == 11
        assert progress.first.value == progress.second.value == pytest.approx((10 + 1 / 4) / 11)
        assert all(each.shared for each in found.metrics[1:])
        table = found.exact["ui-s1-sop"]
        assert (table.only_first, table.only_second, table.both, table.neither) == (1, 1, 42, 0)
        assert {each.key.episode_id for each in flips(found)} == {"e00", "e01"}


def test_a_run_without_any_answer_can_be_compared(tmp_path: Path) -> None:
    one, other = made_run(tmp_path / "a"), without(made_run(tmp_path / "b"), *EPISODES)
    found = compare_runs(one, other)
    whole, *others = found.metrics
    assert (whole.first.value, whole.second.value, whole.second.missing, whole.difference.value) == (1.0, 0.0, 48, None)
    assert {(each.first.value, each.difference.value) for each in others} == {(None, None)}
    assert list(flips(found)) == []


def test_a_difference_that_all_episodes_share_has_no_smallest_one(tmp_path: Path) -> None:
    one, other = made_run(tmp_path / "a", lambda _, step: step == 0), made_run(tmp_path / "b")
    assert {each.smallest for each in compare_runs(one, other, ["aitw-original"]).metrics} == {None}


Change = Callable[[StepTaskModel], dict[str, Any]]


def smaller_targets(task: StepTaskModel) -> dict[str, Any]:
    """Every target cut to a pixel."""
    return {"targets": Boxes([[x1, y1, x1 + 1, y1 + 1] for x1, y1, _, _ in task.targets])}


def run_over(directory: Path, change: Change, model: str) -> Path:
    """A run that is right by the labels of the unchanged episodes, over episodes of which ``change`` relabels the first."""
    episodes = [make_episode(name, ACTIONS) for name in EPISODES[:5]]
    first = Episode(steps=tuple(step.model_copy(update=change(step)) for step in episodes[0].steps))
    run_scripted(directory, [first, *episodes[1:]], ScriptedEngine(lambda request: reply_with(request.task.action)))
    with edited(directory / MANIFEST) as manifest:
        named(model)(manifest)
    return directory


def unchanged(task: StepTaskModel) -> dict[str, Any]:
    return {}


@every_row(
    ("change", "reason"),
    [
        (smaller_targets, r"1 shared step with other targets \(scripted/e00#0\)"),
        (lambda task: {"instruction": "another goal"}, r"4 shared steps with other instructions \(scripted/e00#0, .*#3\)"),
        (lambda task: {"alternatives": (Press(button="BACK"),)}, r"4 shared steps with other references"),
        (lambda task: {"elements": Boxes([[0, 0, 1, 1]])}, r"4 shared steps with other elements"),
    ],
)
def test_two_sets_of_labels_are_not_compared(tmp_path: Path, change: Change, reason: str) -> None:
    one, other = run_over(tmp_path / "a", unchanged, "a"), run_over(tmp_path / "b", change, "b")
    with pytest.raises(UsageError, match=reason):
        compare_runs(one, other)
    found = compare_runs(one, other, anyway=True)
    assert len(found.unlike) == 1
    assert any(line.startswith("Warning: unlike runs, compared anyway: ") for line in headings(found))
    with pytest.raises(UsageError, match=f"the labels of .*a' and .*b' differ: {reason}.*--anyway"):
        leaderboard([one, other])
    board = leaderboard([one, other], anyway=True)
    assert [note for note in board.notes if note.startswith("unlike labels, ranked anyway: ")]


def test_a_campaign_names_the_steps_too(tmp_path: Path) -> None:
    one, other = run_over(tmp_path / "a", unchanged, "a"), run_over(tmp_path / "b", smaller_targets, "b")
    with pytest.raises(UsageError, match="other targets"):
        board_of_campaign([one, other], (), (), None)
    assert board_of_campaign([one, other], (), (), None, anyway=True) is not None
    table = comparison_table([("offline", Repeats.of(one), Repeats.of(other))])
    assert table is not None and not table.rows and "with other targets (scripted/e00#0" in table.notes[0]
    table = comparison_table([("offline", Repeats.of(one), Repeats.of(other))], anyway=True)
    assert table is not None and len(table.rows) == 1 and "compared anyway" in table.notes[0]


def test_equal_labels_are_compared_and_the_manifest_names_their_edition(tmp_path: Path) -> None:
    one, other = run_over(tmp_path / "a", unchanged, "a"), run_over(tmp_path / "b", unchanged, "b")
    editions = [RunFolder(each).manifest.benchmark.edition for each in (one, other)]
    assert editions[0] is not None and editions[0] == editions[1] and editions[0].steps == 20
    found = compare_runs(one, other)
    assert found.unlike == ()
    assert found.first.edition == editions[0].model_dump(mode="json") == compare_json(found)["runs"]["A"]["edition"]
    assert not [note for note in leaderboard([one, other]).notes if "labels" in note]


def test_the_commands_refuse_and_have_a_way_out(guieval: CommandLine, tmp_path: Path) -> None:
    one, other = run_over(tmp_path / "a", unchanged, "a"), run_over(tmp_path / "b", smaller_targets, "b")
    for command in (("compare", one, other), ("leaderboard", one, other)):
        assert "1 shared step with other targets" in guieval.sentence(*command)
        assert guieval(*command, "--anyway").code == 0
