"""Records: one JSON line each way, frozen, and errors that say where."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from guieval.actions import Boxes, Click, Point, Stop, Type
from guieval.errors import DataError
from guieval.steps import (
    VERDICTS,
    Episode,
    EpisodeKey,
    Sample,
    StepError,
    StepKey,
    StepOutcome,
    StepRecord,
    StepTaskModel,
    Usage,
    validated,
)
from tests import made_runs
from tests.json_values import read_json
from tests.rows import every_row


def task(index: int = 0, length: int = 3, episode_id: str = "e1", **changes: Any) -> StepTaskModel:
    about = {"benchmark": "bench", "dataset": "data", "screenshot": f"images/{index}.png"}
    action = changes.pop("action", Click(point=Point(500, 750)))
    return made_runs.step(action, episode=episode_id, index=index, length=length, **{**about, **changes})


texts = st.text(max_size=20)
coordinates = st.floats(0, 1000)
tasks = st.builds(
    task,
    instruction=texts,
    low_level_instruction=st.none() | texts,
    subset=texts,
    episode_id=st.text(min_size=1, max_size=8),
    action=st.builds(Click, point=st.builds(Point, coordinates, coordinates)) | st.builds(Type, text=texts),
    alternatives=st.just((Stop(),)) | st.just(()),
    targets=st.lists(st.tuples(*[st.floats(-1e4, 1e4)] * 4), max_size=3).map(Boxes),
    groups=st.dictionaries(texts, texts, max_size=2),
    extras=st.dictionaries(
        texts, texts | st.integers(-(2**60), 2**60) | st.lists(st.floats(-1e9, 1e9), max_size=2), max_size=2
    ),
)
samples = st.builds(
    Sample,
    raw_response=st.none() | texts,
    thought=st.none() | texts,
    action=st.none() | st.just(Stop()),
    error=st.none() | st.builds(StepError, stage=st.just("parse"), message=texts),
    outcome=st.builds(
        StepOutcome, verdict=st.sampled_from(VERDICTS), type_match=st.booleans(), distance=st.none() | st.floats(0, 1415)
    ),
    usage=st.none() | st.builds(Usage, prompt_tokens=st.integers(0, 9), completion_tokens=st.none()),
    seconds=st.none() | st.floats(0, 1e4),
)
records = st.builds(
    StepRecord,
    task=tasks,
    history=st.lists(st.sampled_from(("reference", "model")), max_size=3).map(tuple),
    samples=st.lists(samples, min_size=1, max_size=2).map(tuple),
)


@given(tasks)
def test_a_step_is_one_line_each_way(step: StepTaskModel) -> None:
    line = step.model_dump_json()
    assert "\n" not in line
    again = StepTaskModel.model_validate_json(line)
    assert again == step
    assert again.model_dump_json() == line
    assert pickle.loads(pickle.dumps(step)) == step


@given(records)
def test_a_record_is_one_line_each_way(record: StepRecord) -> None:
    line = record.model_dump_json()
    assert "\n" not in line
    assert StepRecord.model_validate_json(line) == record
    assert pickle.loads(pickle.dumps(record)) == record


@every_row("field", ["step_index", "action", "targets", "extras"])
def test_records_are_frozen(field: str) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(task(), field, getattr(task(), field))


@every_row(
    ("change", "field"),
    [
        ({"episode_id": ""}, "episode_id"),
        ({"step_index": -1}, "step_index"),
        ({"screenshot_size": (0, 5)}, "screenshot_size.0"),
        ({"setting": "medium"}, "setting"),
        ({"action": {"type": "CLICK", "point": [1, 2000]}}, "action.point.1"),
        ({"targets": [[1, 2, 3]]}, "targets"),
        ({"colour": "red"}, "colour"),
        ({"step_index": 3}, ""),
    ],
)
def test_an_error_names_file_line_and_field(change: dict[str, Any], field: str) -> None:
    line = json.dumps({**read_json(task().model_dump_json()), **change})
    with pytest.raises(DataError) as caught:
        validated(StepTaskModel, line, file=Path("some/steps.jsonl"), line=17)
    assert str(caught.value).startswith(f"some/steps.jsonl, line 17{f', field {field}' if field else ''}: ")


def test_keys_name_steps_and_episodes_which_hold_their_steps_in_order() -> None:
    step = task(1, subset="sub")
    assert step.key == StepKey("bench", "sub", "e1", 1)
    assert str(step.key) == "bench/sub/e1#1"
    assert str(step.episode_key) == "bench/sub/e1"
    assert str(task(2).key) == "bench/e1#2"
    assert str(EpisodeKey("bench", "", "e1")) == "bench/e1"
    episode = Episode(steps=tuple(task(index) for index in range(3)))
    assert len(episode) == 3
    assert episode.key == task().episode_key
    assert Episode.model_validate_json(episode.model_dump_json()) == episode


@every_row(
    ("steps", "problem"),
    [
        ([], "at least 1 item"),
        ([task(0, 2), task(1, 3)], "steps.1 is step 1 of 3, expected 1 of 2"),
        ([task(0), task(2), task(2)], "steps.1 is step 2 of 3, expected 1 of 3"),
        ([task(1), task(0), task(2)], "steps.0 is step 1"),
        ([task(0), task(1)], "steps.0 is step 0 of 3, expected 0 of 2"),
        ([task(0), task(1), task(2, episode_id="e2")], "steps.2 belongs to episode bench/e2"),
        ([task(0), task(1, subset="x"), task(2)], "steps.1 belongs to episode bench/x/e1"),
    ],
)
def test_gaps_and_strangers_are_refused(steps: list[StepTaskModel], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Episode(steps=tuple(steps))


def test_only_an_infrastructure_failure_leaves_a_record_unfinished() -> None:
    for verdict in VERDICTS:
        sample = Sample(outcome=StepOutcome(verdict=verdict))
        record = StepRecord(task=task(), samples=(Sample(outcome=StepOutcome(verdict="right")), sample))
        assert record.finished == (verdict != "infrastructure_failure")
        assert record.sample.outcome.verdict == "right"


def test_a_record_has_at_least_one_sample_and_fields_are_left_out_on_request() -> None:
    with pytest.raises(ValidationError, match="samples"):
        StepRecord(task=task(), samples=())
    record = StepRecord(task=task(), samples=(Sample(outcome=StepOutcome(verdict="right")),), models=("a",))
    assert "models" in record.model_dump() and "models" not in record.model_dump(exclude={"models"})
    assert "screen" not in record.model_dump(exclude={"screen"})
