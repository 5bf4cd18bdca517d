"""Plug-ins by name, entry point and file: what a stranger's file may do wrong, each in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from guieval.errors import UsageError
from guieval.registry import adapter_class, load_benchmark, load_model
from tests.rows import every_row

WHOLE = '''
"""An adapter whose own records need its module to be found."""
from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from guieval.actions import ActionSpace
from guieval.models import ABCModel


@dataclass
class Part:
    name: str | None = None


class Reply(BaseModel):
    part: Part


class Mine(ABCModel):
    action_space = ActionSpace()

    def frame(self, task): ...
    def prepare_input(self, task, history): ...
    def parse_response(self, task, text): return Reply.model_validate_json(text)
    def render(self, task, action, thought=None, conclusion=None): ...
'''


def written(folder: Path, text: str) -> str:
    path = folder / "mine.py"
    path.write_text(text)
    return str(path)


def test_a_file_may_use_postponed_annotations_with_dataclasses_and_pydantic(tmp_path: Path) -> None:
    model = load_model("any name", adapter=written(tmp_path, WHOLE))
    assert type(model).__name__ == "Mine"
    assert model.parse_response(None, '{"part": {"name": "x"}}').part.name == "x"  # type: ignore[arg-type, attr-defined]


@every_row(
    ("text", "message"),
    [
        ("import nothing_of_this_name", "cannot be imported: ModuleNotFoundError"),
        ("def f(:", "cannot be imported: SyntaxError"),
        ("import sys; sys.exit(3)", "cannot be imported: SystemExit"),
        ("x = 1", "exactly one public ABCModel subclass, found 0$"),
        (WHOLE.replace("def prepare_input", "def prepare"), "found 0; Mine lacks prepare_input"),
        (WHOLE.replace("def frame", "def farme"), "states no coordinate frame: set fixed_frame of Mine"),
        (WHOLE.replace("    action_space = ActionSpace()\n", ""), "must set action_space"),
        (WHOLE + "\n    def __init__(self, config, *, thinking=None): raise KeyError('x')\n", "cannot be set up: KeyError"),
        (WHOLE + "\n\nclass Other(Mine): ...\n", "found 2"),
    ],
)
def test_a_broken_adapter_file_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_model("any name", adapter=written(tmp_path, text))


def test_a_path_that_is_no_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    for path in (tmp_path / "none.py", tmp_path / "folder.py"):
        with pytest.raises(UsageError, match="does not exist"):
            adapter_class(str(path))


def test_an_unknown_option_answers_with_the_nearest_and_a_reserved_one_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no option 'episods' \(did you mean 'episodes'\?\)"):
        load_benchmark("demo", tmp_path, episods=3)
    for name in ("root", "self"):
        with pytest.raises(UsageError, match=f"no option '{name}'"):
            load_benchmark("demo", tmp_path, **{name: 1})
