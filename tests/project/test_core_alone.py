"""The core with every wing deleted: its tests pass, the command line lists what is left, and an absent wing is named."""

from __future__ import annotations

from pathlib import Path

from tests.alone import main


def test_the_core_passes_its_tests_without_any_wing(tmp_path: Path) -> None:
    """Finds an import of a wing that the structure test cannot see, e.g. one of a resource or by a computed name."""
    report = tmp_path / "report.txt"
    folders = [f"tests/{name}" for name in ("evaluation", "metrics", "scoring", "parsing", "journal", "rewards")]
    assert main([*folders, "--tier", "core", f"--junitxml={report}"]) == 0
    words = report.read_text(encoding="utf-8")
    passed = words.count("<testcase") - words.count("<skipped")
    assert passed > 300, "too many are skipped to show anything"
    assert "whose folder is deleted" in words
