"""``guieval step``: all that is known of one step, at two widths, in Python, and drawn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from guieval.reports.opened import OpenedRun, open_run
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY
from tests.rows import every_row

PINNED = REPOSITORY / "tests" / "pinned"
RUN, STEP = "runs/hasty/offline", ("delete", "1", "--protocol", "guievalkit", "--protocol", "osatlas", "--adapter", "agents.py")


@pytest.fixture(autouse=True)
def there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PINNED)


@pytest.mark.parametrize("width", [80, 120])
def test_prompt_response_action_and_the_rules_fit_the_width(
    width: int, guieval: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    done = guieval("step", RUN, *STEP)
    assert done.code == 0 and max(map(len, done.out.splitlines())) <= width
    assert done.out == (Path(__file__).parent / f"step-{width}.txt").read_text(encoding="utf-8")


def test_python_and_json_have_the_same_and_the_picture_is_the_screenshot(guieval: CommandLine, tmp_path: Path) -> None:
    values = json.loads(guieval("step", RUN, *STEP, "--json", "--out", tmp_path / "s.png").out)
    run = open_run(RUN)
    assert isinstance(run, OpenedRun)
    step = run.step("delete", 1, protocol="osatlas")
    assert values["prompt"] == step.prompt("agents.py").text and values["response"] == step.texts()["raw response"]
    (accepted,) = values["protocols"][1]["accepted"]
    assert (accepted["exact_match"], accepted["reason"]) == (True, step.outcomes[0].reason)
    assert Image.open(tmp_path / "s.png").size == step.task.screenshot_size == (90, 200)


@every_row(
    ("words", "sentence"),
    [
        (("delet", "1"), "did you mean 'delete'"),
        (("xyzw", "1"), "it has 7, the first is 'delete'"),
        (("delete", "9"), "its steps are 0 to 4"),
        (("delete", "1", "--sample", "2"), "there is no sample 2"),
        (("delete", "1", "--protocol", "osatlass"), "did you mean 'osatlas'"),
        (("delete", "1", "--out", "step.pdf"), "must end in .png, .jpg, .jpeg"),
    ],
)
def test_a_wrong_name_is_one_sentence_with_the_valid_ones(words: tuple[str, ...], sentence: str, guieval: CommandLine) -> None:
    assert sentence in guieval.sentence("step", RUN, *words)


def test_a_step_of_a_task_has_its_end_in_place_of_rules(guieval: CommandLine) -> None:
    done = guieval("step", "runs/phone-hasty", "s0-0006", "1")
    assert done.code == 0 and "executed:  yes; the repetition ended: false completion" in done.out
    assert "its steps are 0 to 3" in guieval.sentence("step", "runs/phone-hasty", "s0-0006", "4")
