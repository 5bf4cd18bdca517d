"""What the fuzz targets found, each as the smallest file that shows it; and the targets' own promises."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np
import pytest

from guieval.actions import Boxes
from guieval.data.typed_rows import Row
from guieval.errors import DataError
from guieval.evaluation import ActionEvaluator
from guieval.exchange.predictions import read_predictions
from guieval.models.response import Call
from guieval.models.scored_response import read_response
from guieval.playground.mock_server.native import answer_body
from guieval.registry import benchmarks, load_benchmark
from tests.conftest import REPOSITORY
from tests.rows import every_row

from . import engine, mutations
from .engine import Target, Wrong, run
from .native_answers import NativeAnswers


def test_a_field_whose_name_has_a_line_break_is_named_on_one_line(tmp_path: Path) -> None:
    row = {"subset": "", "episode_id": "1", "step_index": 0, "step_index\n\x1b[2J": 0, "action": None}
    (tmp_path / "p.jsonl").write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_predictions(tmp_path / "p.jsonl", "guieval")
    assert str(caught.value).isprintable() and r"step_index\n\x1b[2J" in str(caught.value)


def test_a_long_value_does_not_make_a_long_message() -> None:
    message = str(DataError(f"names.json, field a: {'x' * 100_000}: is not there"))
    assert len(message) < 1000 and message.startswith("names.json, field a") and message.endswith("is not there")


@pytest.mark.filterwarnings("error")
def test_a_box_whose_corner_overflows_is_refused_without_a_warning(tmp_path: Path) -> None:
    """Numpy prints a RuntimeWarning, which has no place among the messages for a user."""
    with pytest.raises(DataError, match=r"field boxes: .*finite"):
        Row({}, "file").build("boxes", lambda: Boxes(np.array([[0.0, 0.0, 1e308, 1e308]]) * 1000.0))
    benchmarks()["episodes"].write_example(tmp_path)
    file = tmp_path / "episodes.jsonl"
    first, *others = file.read_text(encoding="utf-8").splitlines()
    episode = json.loads(first)
    assert episode["frame"] == "pixels"
    episode["steps"][0]["targets"] = [[0, 0, 1e308, 1e308]]
    file.write_text("\n".join([json.dumps(episode), *others]), encoding="utf-8")
    with pytest.raises(DataError, match=r"targets: .*finite"):
        list(load_benchmark("episodes", tmp_path))


@pytest.mark.parametrize("name", ["amex", "androidcontrol", "hypertrack"])
def test_the_name_of_a_screenshot_may_be_too_long_for_the_file_system(tmp_path: Path, name: str) -> None:
    benchmarks()[name].write_example(tmp_path)
    for file in tmp_path.rglob("*.json"):
        file.write_text(file.read_text(encoding="utf-8").replace('.png"', f'{"x" * 5000}.png"'), encoding="utf-8")
    assert all("x" * 5000 in step.screenshot for episode in load_benchmark(name, tmp_path) for step in episode.steps)


class Faulty(Target):
    """Fails in one way for every third seed."""

    name: ClassVar[str] = "faulty"
    fault: ClassVar[str] = ""

    def __init__(self, folder: Path, real: Path | None) -> None:
        self._kept: list[bytes] = []

    def check(self, dice: Random) -> None:
        if dice.random() < 0.5:
            return
        match self.fault:
            case "wrong":
                raise Wrong("it is wrong")
            case "leaks":
                raise KeyError("field")
            case "slow":
                began = time.process_time()
                while time.process_time() - began < 60:
                    pass
            case "large":
                self._kept.append(b"x" * (700 << 20))


def failures(fault: str, folder: Path, seeds: list[int]) -> list[tuple[str, str]]:
    Faulty.fault = fault
    engine.SECONDS = 1 if fault == "slow" else 60
    return [(failed.why, str(failed)) for failed in run(Faulty(folder, None), seeds)]


@every_row(("fault", "sentence"), [("wrong", "it is wrong"), ("leaks", "KeyError"), ("slow", "CPU time"), ("large", "MiB")])
def test_the_engine_notices(fault: str, sentence: str, tmp_path: Path) -> None:
    """In a process of its own: the engine compares peaks of memory, and those of earlier tests may be higher."""
    seeds = [seed for seed in range(20) if Random(seed).random() >= 0.5][:1]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        ((why, message),) = pool.submit(failures, fault, tmp_path, seeds).result()
    assert sentence in why and f"--seed {seeds[0]} --cases 1" in message


def test_a_case_is_made_from_its_seed_alone() -> None:
    material: dict[str, Any] = {"a": [1, 2, {"b": "text"}], "c": None}

    def made(seed: int) -> bytes:
        return mutations.written(Random(seed), mutations.value(Random(seed), material), lines=False)

    first = [made(seed) for seed in range(300)]
    assert first == [made(seed) for seed in range(300)] and len(set(first)) > 100


def test_one_command_repeats_cases_and_prints_their_seeds() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "replies", "--seed", "41", "--cases", "2"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("replies: 2 cases, seeds 41 to 42") and done.stdout.endswith("0 failed\n")


@every_row("way", range(3))
def test_a_look_that_no_json_can_hold_is_the_models_answer(way: int, tmp_path: Path) -> None:
    """A server's JSON can be read at depths at which it can no longer be written, and NaN cannot be sent back at all."""
    target = NativeAnswers(tmp_path, None)
    try:
        asked = target._ways[way]
        body = answer_body(asked.api, Call("zoom", {"region": "DEEP"}).written, asked.fields, 0).decode()
        mark = r"\"DEEP\"" if r"\"DEEP\"" in body else '"DEEP"'
        deep = {f"{depth} levels": "[" * depth + "]" * depth for depth in (100, 500, *range(900, 1000, 3), 100_000)}
        for what, value in {**deep, "NaN": "[NaN, 0, 10, 10]", "infinity": "[1e999, 0, 10, 10]"}.items():
            target._answers = [body.replace(mark, value).encode()]
            response = target._loop.run_until_complete(asked.engine.generate(asked.request))
            sample = read_response(asked.model, ActionEvaluator("guievalkit"), asked.request.task, response)
            assert sample.outcome.verdict == "unparseable", what
    finally:
        target.close()
