"""docs/reproduced.md holds what its command finds in the public files."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from guieval.errors import DataError
from perf import reproduced
from perf.reproduced import FILES, PAGE, SOURCES, Score, page


@pytest.fixture(scope="module", autouse=True)
def _once() -> Iterator[None]:
    """Each file is scored once, for the page and for the other tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("compare", "ui_genie"):
            patch.setattr(reproduced, name, cache(getattr(reproduced, name)))
        yield


@pytest.fixture
def data(shared_data: Path) -> Path:
    if not (shared_data / FILES).is_dir():
        pytest.skip(f"no public result files at {shared_data / FILES}")
    return shared_data


def test_the_page_is_what_the_command_finds(data: Path) -> None:
    found = page(data)
    assert found == PAGE.read_text(encoding="utf-8")
    assert "not explained" not in found


def test_scores_are_the_stated_ones_but_for_polygons(data: Path) -> None:
    first, _, polygons, corners = [reproduced.compare(each, data) for each in SOURCES[:4]]
    assert first.stated == first.found == Score(1210, 1272) and str(first.found) == "1,210 of 1,272 (95.13%)"
    assert (polygons.stated, polygons.found) == (Score(344, 564), Score(356, 564))
    assert sum(map(len, polygons.differing.values())) == 14
    # under the authors' own rule for polygons their score comes out
    assert (corners.stated, corners.found, corners.differing) == (Score(344, 564), Score(344, 564), {})


def test_ui_genies_four_figures_are_equal(data: Path) -> None:
    *_, stated, found, rows = reproduced.ui_genie(data)
    assert stated == "action_acc 74.66%, type_match_acc 83.90%, grounding_acc 83.49%, ep_acc 27.11%"
    assert found == f"{stated} under `ui-genie`" and rows.startswith("4 of 4 figures are equal in every digit")


def test_a_file_that_is_not_there_is_named_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"no Tongyi-MAI\+MAI-UI__local_SSV2.json in .*https://github.com/Tongyi-MAI/MAI-UI/blob/"
    ):
        page(tmp_path)
