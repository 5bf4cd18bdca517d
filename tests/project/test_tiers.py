"""The tiers of the tests themselves: a test that belongs to none would never run, and nobody would notice."""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath

import pytest

from tests import cost, parts, tiers
from tests.conftest import REPOSITORY, TESTS


def test_the_longest_path_and_then_the_larger_mark_decide() -> None:
    place = PurePosixPath("faults/test_disks.py")
    assert tiers.tier_of(place) == tiers.tier_of(PurePosixPath("faults")) == "ci"
    assert tiers.tier_of(place, frozenset({"full"})) == "full"
    assert tiers.tier_of(PurePosixPath("studies/test_correlation.py")) == "core"
    assert tiers.tier_of(PurePosixPath("studies/test_correlation.py"), frozenset({"ci", "other"})) == "ci"
    assert tiers.tier_of(PurePosixPath("online/test_runs.py")) == "core"  # a file of the folder is named, not the folder


def test_what_is_named_exists() -> None:
    assert [name for name in (*tiers.LARGER, *cost.BUDGETS) if not (TESTS / name).exists()] == []


def test_every_part_is_a_target_and_every_test_target_is_part_of_test_all() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert {part for lanes in parts.TIERS.values() for lane in lanes for part in lane} <= targets
    everything = {part for lane in parts.TIERS["all"] for part in lane}
    used = re.search(r"USED = \$\(addprefix tests/,(.*?)\)\n", (REPOSITORY / "Makefile").read_text("utf-8"), re.DOTALL)
    assert used is not None and [name for name in used[1].replace("\\", "").split() if not (TESTS / name).exists()] == []
    # test-trainers is a selection of test-train and test-verl
    tested = {name for name in targets if name.startswith(("test-", "check"))}
    assert tested - {"test-ci", "test-all", "test-trainers"} <= everything


def test_a_folder_that_outgrew_the_others_fails_on_a_machine_of_any_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "BUDGETS", {"metrics": 10.0, "models": 20.0, "journal": 5.0})
    for slower in (0.5, 1.0, 3.0):
        budget = 10 * max(slower, 1.0)
        others = {"models": 20 * slower, "journal": 5 * slower}
        assert cost.over_budget({"metrics": 2 * budget, **others}) == []
        sentence = f"tests/metrics took {2 * budget + 1:.0f} processor seconds; its budget is {budget:.0f} here (tests/cost.py)"
        assert cost.over_budget({"metrics": 2 * budget + 1, **others}) == [sentence]
    assert cost.over_budget({"unheard_of": cost.LEAST * 3}) != []


def test_a_part_that_passed_is_repeated_after_a_change_of_any_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PASSED", tmp_path / "passed.json")
    monkeypatch.setattr(parts, "fingerprint", lambda: "these files")
    assert parts.passed_before() == []
    parts.PASSED.write_text(json.dumps({"files": "these files", "parts": ["lint"]}), encoding="utf-8")
    assert parts.passed_before() == ["lint"]
    monkeypatch.setattr(parts, "fingerprint", lambda: "other files")
    assert parts.passed_before() == []
    parts.PASSED.write_text('{"files": ', encoding="utf-8")  # the machine stopped while it was written
    assert parts.passed_before() == []
