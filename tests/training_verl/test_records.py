"""The part of the plug-in without verl: settings, rows, and advantages of rows in any order."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from guieval.actions import Click, Wait
from guieval.errors import UsageError
from guieval.registry import load_benchmark
from guieval.rewards.advantages import AdvantageSettings
from guieval.training.data.examples import TrainingData
from guieval.training.verl.__main__ import app
from guieval.training.verl.records import RowRecord, group_is_kept, logged, row_advantages
from guieval.training.verl.rows import read_place, write_rows
from guieval.training.verl.settings import read_settings
from tests.rows import every_row
from tests.scripted import ScriptedEngine, reply_with, run_scripted
from tests.training_verl.conftest import read_rows

MEAN = AdvantageSettings(normalise="mean")


def record(session: int, step: int, reward: float, *, matched: bool = True, uid: str = "a", **named: Any) -> RowRecord:
    given = {"patched": False, "type_match": True, "measured": True, **named}
    return RowRecord(uid, session, step, reward, matched, **given)


def test_rows_in_any_order_get_their_own_advantage() -> None:
    # two rollouts of one task: 1.0 then 0.5 (a mismatch), and 0.5 at once; gamma 0.5, omega 1, differences from the mean
    first, second, other = record(0, 0, 1.0), record(0, 1, 0.5, matched=False), record(1, 0, 0.5, matched=False)
    # returns 1.0 + 0.5 * 0.5 = 1.25 and 0.5: step level +-0.375; sums 1.5 and 0.5: episode level +-0.5; the last step is alone
    expected = {first: 0.875, second: 0.5, other: -0.875}
    for rows in ([second, None, other, first], [first, second, other, None]):
        assert row_advantages(rows, MEAN) == pytest.approx([0.0 if row is None else expected[row] for row in rows])
    # tasks are not compared with each other
    apart = [record(0, 0, 1.0), record(0, 0, 0.0, uid="b"), record(1, 0, 1.0), record(1, 0, 0.0, uid="b")]
    assert row_advantages(apart, MEAN) == [0.0] * 4
    # a reply that could not be judged teaches nothing
    right, unmeasured = row_advantages([record(0, 0, 1.0), record(1, 0, 0.0, matched=False, measured=False)], MEAN)
    assert right > 0 and unmeasured == 0.0


def test_a_group_is_kept_when_its_advantages_spread_more_than_eta_and_figures_are_means() -> None:
    group = [record(0, 0, 0.6), record(1, 0, 0.5, matched=False)]
    # differences +-0.05 on both levels: advantages +-0.1, of population standard deviation 0.1
    assert group_is_kept(group, 0.09, MEAN) and not group_is_kept(group, 0.11, MEAN)
    assert not group_is_kept([record(0, 0, 0.5), record(1, 0, 0.5)], 0.0, AdvantageSettings())
    # figures are means over steps and over rollouts
    rows = [record(0, 0, 1.0), record(0, 1, 0.4, matched=False, patched=True, type_match=False), record(1, 0, 1.0)]
    found = logged(rows)
    assert found["guieval/exact_match"] == pytest.approx(2 / 3) and found["guieval/reward"] == pytest.approx(0.8)
    assert found["guieval/steps"] == 1.5 and found["guieval/patches"] == 0.5
    assert logged([]) == {}


def test_rows_say_where_their_episode_or_step_is(data: TrainingData, rows: Path, tmp_path: Path) -> None:
    lines = read_rows(rows)
    assert [line["extra_info"]["index"] for line in lines] == [0, 1, 2, 3]
    for number, line in enumerate(lines):
        place = read_place(line["extra_info"])
        assert place.episode == data.episode(number) and place.step is None and not place.validation
        assert place.counted == tuple(range(len(place.episode))) and place.root == data.benchmark.root.resolve()
        assert place.protocol == data.benchmark.protocol
    assert max(len(json.dumps(line)) for line in lines) < 1000  # verl copies a row to every step of every rollout
    count = write_rows(data, tmp_path, steps=True)
    lines = read_rows(tmp_path)
    assert count == len(lines) == sum(len(data.episode(number)) for number in range(4))
    for line in lines:
        place = read_place(line["extra_info"])
        assert place.step is not None
        assert line["reward_model"]["ground_truth"] == place.episode.steps[place.step].model_dump_json()


def test_rows_are_those_of_a_sample_set_as_often_as_their_weight_says(tmp_path: Path) -> None:
    benchmark = load_benchmark("demo")
    key = next(iter(benchmark.index())).key
    (tmp_path / "steps.txt").write_text(f"{key.episode_id}#0\n{key.episode_id}#1\n", encoding="utf-8")
    chosen = ["--episodes", str(tmp_path / "steps.txt"), "--split", "all", "--steps", "--weight", "1.5"]
    made = CliRunner().invoke(app, ["rows", str(tmp_path / "rows"), "--bench", "demo", *chosen])
    assert made.exit_code == 0, made.output
    assert "3 rows" in made.output
    places = [read_place(line["extra_info"]) for line in read_rows(tmp_path / "rows")]
    assert {place.step for place in places} == {0, 1} and {place.episode.key for place in places} == {key}
    for arguments, message in (
        (["--weight", "0"], "setting 'weight' is 0.0: "),
        (["--sample-set", "none.json"], "the sample set 'none.json' cannot be read"),
        (["--limit", "9999"], "9,999 episodes of demo are to be trained on"),
        (["--online", "--steps"], "--steps is for recorded episodes"),
        (["--max-steps", "3"], "--max-steps is for --online"),
        (["--bench", "demo-icons", "--online", "--option", "episodess=3"], "did you mean 'episodes'?"),
    ):
        refused = CliRunner().invoke(app, ["rows", str(tmp_path / "others"), "--bench", "demo", *arguments])
        assert isinstance(refused.exception, UsageError) and message in str(refused.exception)


def test_rows_follow_a_curriculum(tmp_path: Path) -> None:
    """Of two measured steps, one was solved by half of the samples and one by none; the others were not measured."""
    benchmark = load_benchmark("demo")
    episode = next(each for each in map(benchmark.load, benchmark.index()) if isinstance(each.steps[0].action, Click))
    halves = iter([True, False])

    def policy(request: Any) -> str:
        right = request.task.step_index == 0 and next(halves)
        return reply_with(request.task.action if right else Wait())

    run_scripted(tmp_path / "run", [episode.model_copy(update={"steps": episode.steps[:2]})], ScriptedEngine(policy), samples=2)
    told = ["--curriculum", f"runs={tmp_path / 'run'}", "--curriculum", "weight=learnable"]
    given = ["rows", str(tmp_path / "rows"), "--bench", "demo", "--split", "all", "--steps", *told]
    made = CliRunner().invoke(app, given)
    assert made.exit_code == 0, made.exception
    (line,) = read_rows(tmp_path / "rows")
    place = read_place(line["extra_info"])
    assert (place.episode.key, place.step) == (episode.key, 0)
    refused = CliRunner().invoke(app, [*given[:1], str(tmp_path / "no"), *given[2:], "--curriculum", "pass_rat=1"])
    assert "unknown setting 'curriculum.pass_rat' (did you mean 'pass_rate'?)" in str(refused.exception)


def test_rows_are_not_written_over_and_name_an_episode_that_is_there(data: TrainingData, rows: Path) -> None:
    with pytest.raises(UsageError, match=r"already has rows\.jsonl"):
        write_rows(data, rows)
    info = read_rows(rows)[0]["extra_info"]
    for extra_info, message in (
        (None, "does not name its episode"),
        ({}, "does not name its episode"),
        ({"episodes": "x", "offset": "no"}, "does not name its episode"),
        ({**info, "episodes": str(rows / "gone.jsonl")}, "must be seen under this path from every node"),
        ({**info, "offset": 7}, "at byte 7 of"),
    ):
        with pytest.raises(UsageError, match=message):
            read_place(extra_info)


@every_row(
    ("group", "message"),
    [
        (None, "has no group 'guieval'"),
        ({}, r"'guieval\.model' is required"),
        ({"model": "tiny-policy", "modell_options": {}}, r"setting 'guieval\.modell_options' \(did you mean 'model_options'"),
        ({"model": "tiny-policy", "mini_batches": 0}, r"'guieval\.mini_batches' is 0"),
        ({"model": "tiny-policy", "rollout": {"patch": "off-policy"}}, r"patch off-policy needs either 'rollout\.thoughts'"),
        ({"model": "tiny-policy", "advantages": {"gama": 1}}, r"'guieval\.advantages\.gama' \(did you mean 'gamma'"),
    ],
)
def test_settings_that_cannot_be_are_named(group: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_settings({} if group is None else {"guieval": group})


def test_the_adapter_is_opened_with_the_options_given() -> None:
    reward = {"name": "ui-s1", "weights": {"exact_weight": 0.6}}
    settings = read_settings({"guieval": {"model": "tiny-policy", "reward": reward}})
    model = settings.open_adapter()
    assert settings.reward.open_scorer(model, 32).reward.highest == pytest.approx(1.1)
    assert math.isclose(settings.advantages.gamma, 0.5)
    with pytest.raises(UsageError, match="max_images"):
        read_settings({"guieval": {"model": "tiny-policy", "model_options": {"max_images": 2}}}).open_adapter()
