"""What a training is made on: the same choices of episodes and steps as a run's."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from guieval.engines.in_process.checkpoint import Checkpoint
from guieval.errors import UsageError
from guieval.training.config import parse_config
from guieval.training.data.examples import open_data
from guieval.training.evaluation import Evaluator
from tests.command_line import CommandLine

DEMO = {"kind": "sft", "model": "qwen2.5-vl-7b", "bench": "demo"}


@pytest.fixture
def pair(guieval: CommandLine, tmp_path: Path) -> dict[str, Any]:
    """A sample set of two episodes of the demo, the first counts with its first step alone."""
    nested = guieval("select", "--bench", "demo", "--split", "all", "--nested", "2", "--out", tmp_path / "pair.txt")
    assert nested.code == 0
    lines = (tmp_path / "pair-2.txt").read_text().split()
    episodes = list(dict.fromkeys(line.partition("#")[0] for line in lines))
    kept = [line for line in lines if not line.startswith(f"{episodes[0]}#") or line.endswith("#0")]
    (tmp_path / "steps.txt").write_text("\n".join(kept))
    assert guieval("select", "--bench", "demo", "--split", "all", "--nested", "2", "--out", tmp_path / "pair.json").code == 0
    return {"file": tmp_path / "pair-2.json", "episodes": episodes, "steps": len(lines), "list": tmp_path / "steps.txt"}


def test_a_sample_set_is_what_is_trained_on(pair: dict[str, Any]) -> None:
    data = open_data(parse_config({**DEMO, "sample_set": str(pair["file"])}))
    assert {ref.key.episode_id for ref in data.selection.refs} == {name.rpartition("/")[2] for name in pair["episodes"]}
    assert len(data.steps) == pair["steps"] == json.loads(pair["file"].read_text())["steps"]
    narrowed = open_data(parse_config({**DEMO, "sample_set": str(pair["file"]), "episodes": str(pair["list"])}))
    assert len(narrowed.steps) == len(pair["list"].read_text().split())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("androidcontrol-curatd", "unknown sample set 'androidcontrol-curatd'"),
        ("none.json", "the sample set 'none.json' cannot be read"),
        ("", "setting 'sample_set' is ''"),
    ],
)
def test_a_wrong_sample_set_is_one_sentence(given: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_data(parse_config({**DEMO, "sample_set": given}))
    assert message in str(caught.value)


@pytest.mark.parametrize("missing", [False, True])
def test_an_evaluation_has_a_set_of_its_own(pair: dict[str, Any], tmp_path: Path, missing: bool) -> None:
    held_out = {"every": 10, "sample_set": "none.json" if missing else str(pair["file"])}
    config = parse_config({**DEMO, "evaluation": held_out, "out": str(tmp_path / "out")})
    assert config.evaluation is not None and config.sample_set is None
    model = config.open_adapter()
    refused = pytest.raises(UsageError, match=r"the sample set 'none.json' cannot be read") if missing else nullcontext()
    with refused:  # before an hour of training
        Evaluator(config, config.evaluation, model, Checkpoint(model.config))
