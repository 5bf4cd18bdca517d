"""docs/gpu.md: written from the rows of perf/gpu, which a newer row of the same card replaces, and held against the goals."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from perf.gpu.measured import COUNTERS, Load, Responses
from perf.gpu.page import GOALS, PAGE, Row, merge, read_rows, text, write
from tests.conftest import REPOSITORY

OFFLINE = Row("vllm", "offline", "offline", 4.0, "steps/s", card="H100", date="2026-11-28")


def test_the_page_is_what_the_rows_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == text(read_rows()), "python -m perf.gpu page"


@pytest.mark.parametrize(
    ("goal", "row", "said"),
    [
        (0, replace(OFFLINE, name="soeval", value=3.48), "reached"),
        (0, replace(OFFLINE, name="soeval", value=3.47), "**missed**"),
        (0, replace(OFFLINE, name="soeval", date="2026-11-27"), "not measured"),  # on another day than offline
        (1, replace(OFFLINE, name="sop", card="H200"), "not measured"),
        (2, replace(OFFLINE, part="sft", name="row", value=1.8), "reached"),
        (3, replace(OFFLINE, part="grpo", name="step", value=15.1), "**missed**"),
        (3, replace(OFFLINE, part="grpo", name="step-transformers", value=1.0), "not measured"),  # not with vLLM
    ],
)
def test_a_goal_is_reached_missed_or_not_measured(goal: int, row: Row, said: str) -> None:
    assert GOALS[goal].cells([OFFLINE, row])[-1] == said


def test_a_newer_row_takes_the_place_of_an_earlier_one_on_the_same_card(tmp_path: Path) -> None:
    newer, elsewhere = replace(OFFLINE, value=5.0, date="2026-12-01"), replace(OFFLINE, card="H200")
    assert merge([OFFLINE], [elsewhere, newer]) == [newer, elsewhere]
    rows, page = tmp_path / "rows.jsonl", tmp_path / "gpu.md"
    for new in (OFFLINE, newer):
        write([new], rows, page)
    assert read_rows(rows) == [newer] and "| 5 steps/s |" in page.read_text() and "| 4 steps/s |" not in page.read_text()


def test_what_is_read_while_a_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is not whole yet is read later; the rate counts from the first request, not from its response."""
    journal, now = tmp_path / "steps.jsonl", iter((10.0, 12.0))
    monkeypatch.setattr("perf.gpu.measured.time.time", lambda: next(now))
    responses = Responses(journal)
    responses.look()
    line = b'{"samples": [{"seconds": 2.0, "usage": {"prompt_tokens": 7, "completion_tokens": 1}}]}\n'
    journal.write_bytes(line + line[:9])
    responses.look()
    journal.write_bytes(line + line)
    responses.look()
    assert responses.seen == [(10.0, 2.0), (12.0, 2.0)] and responses.rate == 2 / 4 and responses.prompt == 14
    page = 'vllm:prefix_cache_queries_total{engine="0"} 5.0\nvllm:prefix_cache_hits_total{engine="0"} 2.0\n'
    assert COUNTERS.findall(page) == [("queries", "5.0"), ("hits", "2.0")]
    load = Load()
    load.samples = [(90.0, 600.0, 1024.0), (100.0, 700.0, 2048.0)]
    assert str(load) == "95 %, 650 W, 2.0 GiB" and str(Load()) == ""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["vlm"],
            "PART is 'vlm': expected one of vllm, transformers, sft, grpo, semi, full3, all, page (did you mean 'vllm'?)",
        ),
        ([""], "PART is not given: expected one of vllm, transformers, sft, grpo, semi, full3, all, page"),
        (["sft", "--model", "nowhere"], "MODEL is 'nowhere': expected a folder with config.json"),
    ],
)
def test_a_wrong_word_ends_with_a_sentence(words: list[str], sentence: str) -> None:
    ended = subprocess.run([sys.executable, "-m", "perf.gpu", *words], cwd=REPOSITORY, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", f"gpu: {sentence}\n")
