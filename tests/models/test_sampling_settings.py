"""Sampling settings: a wrong name, type or range is one sentence before anything is asked; what older runs hold still opens."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from guieval.errors import UsageError
from guieval.journal import MANIFEST, RunFolder
from guieval.models import ModelConfig, Scaffold
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import list_models, load_benchmark, model_config
from guieval.running.config import merge, parse
from guieval.running.resolve import sample_parameters
from guieval.training.settings import Evaluation
from tests.command_line import CommandLine
from tests.json_values import read_json
from tests.rows import every_row

NAMES = {"model": "ocr-baseline", "bench": "demo"}
SMALL = ("--set", "bench_options.episodes=2", "--quiet")
WRONG = [
    ("sampling.temperature=hot", "setting 'sampling.temperature' is 'hot': expected a number"),
    ("sampling.temperature=-4", "setting 'sampling.temperature' is -4: expected 0 or more"),
    ("sampling.temperature=true", "setting 'sampling.temperature' is True"),
    (
        "sampling.tempurature=0.4",
        r"'sampling.tempurature' is unknown \(did you mean 'sampling.temperature'\?\).*sampling.extra.tempurature",
    ),
    ("resampling.topp=0.4", r"'resampling.topp' is unknown \(did you mean 'resampling.top_p'\?\).*resampling.extra.topp"),
    *(("sampling.top_p=0", "setting 'sampling.top_p' is 0: "), ("sampling.top_p=1.5", "setting 'sampling.top_p' is 1.5: ")),
    *(("sampling.top_k=0.5", "setting 'sampling.top_k' is 0.5: "), ("sampling.min_p=2", "setting 'sampling.min_p' is 2: ")),
    ("sampling.seed=x", "setting 'sampling.seed' is 'x': expected a whole number"),
    ("sampling.max_tokens=0", "setting 'sampling.max_tokens' is 0: "),
    ("sampling.presence_penalty=3", "setting 'sampling.presence_penalty' is 3: "),
    ("sampling.repetition_penalty=0", "setting 'sampling.repetition_penalty' is 0: "),
    ("sampling.stop=3", "setting 'sampling.stop' is 3: expected text, or a list of texts"),
    ("sampling.stop_token_ids=[a]", "setting 'sampling.stop_token_ids.0' is 'a'"),
    ("sampling.n=4", "'sampling.n' cannot be given: use --samples"),
    ("sampling.extra.n=4", "'sampling.extra.n' cannot be given: use --samples"),
    ("sampling.extra.top_k=4", "'sampling.extra.top_k' cannot be given here: leave out 'extra'"),
    ("sampling.extra=4", "setting 'sampling.extra' is 4"),
]


@every_row(("override", "message"), WRONG)
def test_a_wrong_sampling_setting_is_one_sentence(guieval: CommandLine, tmp_path: Path, override: str, message: str) -> None:
    sentence = guieval.sentence("run", "--model", "ocr-baseline", "--bench", "demo", "--out", tmp_path / "x", "--set", override)
    assert re.search(message, sentence), sentence
    assert not (tmp_path / "x").exists()


def test_values_stay_as_they_were_given() -> None:
    """They are sent and fingerprinted as they are: 1 does not become 1.0."""
    given: dict[str, Any] = {"temperature": 1, "top_k": -1, "top_p": None, "seed": 7, "stop": ["a"], "logit_bias": {"5": 1}}
    given |= {"prompt_cache_key": "a", "stop_token_ids": [1], "extra": {"eos_token": "x"}}  # which only sound like secrets
    assert json.dumps(parse({**NAMES, "sampling": given}).sampling.request) == json.dumps(given)


def test_extra_of_checkpoint_and_run_are_merged() -> None:
    config = parse({**NAMES, "sampling": {"extra": {"b": 2}}})
    model = ModelConfig(name="m", adapter="a", scaffold=Scaffold(sampling={"temperature": 0.5, "extra": {"a": 1, "b": 1}}))
    assert sample_parameters(config, model) == [{"temperature": 0.5, "a": 1, "b": 2}]


@pytest.mark.parametrize("values", [{"temperature": "hot"}, {"tempurature": 0.4}, {"n": 2}])
def test_scaffolds_and_evaluations_of_a_training_obey_the_same(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Scaffold(sampling=values)
    with pytest.raises(ValidationError):
        Evaluation(every=1, sampling=values)


def test_what_guieval_does_not_know_is_sent_from_extra_and_runs_of_older_versions_resume(
    guieval: CommandLine, tmp_path: Path
) -> None:
    """Names and values were not checked when these began; changing them is checked."""
    run, data = tmp_path / "run", tmp_path / "data"
    settings = MockSettings(model="ui-tars-7b", served_models=("ui-tars-7b",), keep=1)
    with MockServer(settings, benchmark=load_benchmark("demo", data, episodes=2)) as server:
        guieval(
            *("run", "--model", "ui-tars-7b", "--bench", "demo", "--data", data, "--out", run, "--base-url", server.base_url),
            *("--set", "sampling.extra.top_a=0.1", "--set", "sampling.min_p=0.05", *SMALL),
        )
        body = read_json(server.requests[-1].body)
        assert body["top_a"] == 0.1 and body["min_p"] == 0.05 and "extra" not in body
        manifest = RunFolder(run).manifest.to_json()
        for held in ({"tempurature": 0.4}, {"top_k": "many"}):
            manifest["config"]["sampling"] = held
            (run / MANIFEST).write_text(json.dumps(manifest))
            assert guieval("run", "--resume", run, "--quiet").code == 0
            assert guieval("score", run).code == 0
            wrong = ("--set", "sampling.tempurature=0.5", "--set", "sampling.x=1")
            assert "is unknown" in guieval.sentence("run", "--resume", run, *wrong)


def test_extra_is_no_other_run_than_the_bare_name_of_older_versions() -> None:
    old = {**NAMES, "sampling": {"top_a": 0.1, "top_p": 0.5}}
    new = parse({**NAMES, "sampling": {"top_p": 0.5, "extra": {"top_a": 0.1}}})
    assert parse(old, kept=old).identity() == new.identity()


def greedy_checkpoints() -> list[str]:
    """Checkpoints that only take the likeliest token."""
    return [name for name in list_models() if model_config(name).scaffold.sampling.get("top_k") == 1]


@every_row("name", lambda: [*greedy_checkpoints(), "ui-tars-7b"])
@every_row("given", [["sampling.temperature=0"], ["sampling.temperature=0.7"]])
def test_following_the_advice_about_greedy_samples_is_enough(name: str, given: list[str]) -> None:
    assert len(greedy_checkpoints()) > 1
    values = {"model": name, "bench": "demo", "samples": 8, "base_urls": ["http://x/v1"]}
    model = model_config(name)
    try:
        sample_parameters(merge(None, given, values), model)
    except UsageError as error:
        advised = re.findall(r"--set (\S+=[-\d.]+)", str(error))
        further = sample_parameters(merge(None, [*given, *advised], values), model)[1]
        assert further["temperature"] >= 0.7 and further.get("top_k", -1) == -1 and further.get("top_p", 1) > 0.1
    else:
        assert name == "ui-tars-7b" and given == ["sampling.temperature=0.7"]
