"""The share of idle slots that perf/throughput.py prints, on logs worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perf.throughput import idle_share


def written(file: Path, *requests: tuple[str, float, float]) -> Path:
    file.write_text("".join(json.dumps({"tag": tag, "arrival": start, "end": end}) + "\n" for tag, start, end in requests))
    return file


def test_a_step_is_ready_when_the_one_before_has_ended(tmp_path: Path) -> None:
    """One episode of two steps, the second asked 0.5 s after the first ended: 0.5 of 2 slots x 4.5 s. The other slot is never
    counted, for no step was ready for it."""
    log = written(tmp_path / "log", ("a", 0.0, 2.0), ("a", 2.5, 4.5))
    assert idle_share(log, 2, sequential=True) == pytest.approx(0.5 / 9)
    assert idle_share(log, 2, sequential=False) == pytest.approx((2.0 + 0.5) / 9)
