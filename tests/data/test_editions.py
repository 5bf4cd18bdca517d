"""Editions of a data set: which labels they are, whatever the file's unit or the part of the data."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Boxes, Click, Point, Press, Type
from guieval.data.doctor.examine import examine
from guieval.data.editions import PARTS, Edition, KnownEdition, LabelDigest, known_editions, labels_of
from guieval.data.sample_sets import get_sample_set, list_sample_sets, sample_sets_folder
from guieval.data.selection import Choice, labels_of_set, select
from guieval.registry import load_benchmark
from guieval.steps import StepKey, StepTaskModel
from tests.made_runs import step
from tests.rows import every_row

LISTS = "screenspot_pro_format_annotations"
AT = Point(500, 500)
TASK = step(Click(point=AT), targets=Boxes([[400, 400, 600, 600]]), elements=Boxes([[0, 0, 100, 100]]))


def steps_of(bench: str, folder: Path, **options: Any) -> list[StepTaskModel]:
    return [each for episode in load_benchmark(bench, folder, **options) for each in episode.steps]


def older_screenspot(shared: Path, out: Path) -> Path:
    """The newer lists with the rows that the findings give of the older ones; skips where they are not at hand."""
    findings = shared.parent / "reference" / "findings" / "truth_and_statistics.md"
    if not findings.is_file():
        pytest.skip(f"the rows of the older edition are in {findings}, which is not here")
    row = re.compile(r'^\| (\d+) \| \S+ \| ([\d, ]+?)(?: "([^"]+)")? \| ([\d, ]+?)(?: "([^"]+)")? \|$', re.MULTILINE)
    rows = row.findall(findings.read_text(encoding="utf-8"))
    assert len(rows) == 15
    shutil.copytree(shared / LISTS / "ScreenSpot_V2_data", out, copy_function=shutil.copyfile)
    file = out / "screenspot_desktop_v2_convert.json"
    listed = json.loads(file.read_text(encoding="utf-8"))
    for place, before, words, now, words_now in rows:
        target = listed[int(place)]
        assert target["bbox"] == [int(edge) for edge in now.split(",")]
        assert words_now in ("", target["instruction"])
        target |= {"bbox": [int(edge) for edge in before.split(",")]} | ({"instruction": words} if words else {})
    file.write_text(json.dumps(listed), encoding="utf-8")
    return out


@every_row(
    ("dataset", "name", "bench", "folder", "options"),
    [
        ("screenspot-v2", "newer", "screenspot-v2", f"{LISTS}/ScreenSpot_V2_data", {}),
        ("screenspot-pro", "English instructions", "screenspot-pro", f"{LISTS}/ScreenSpot_Pro_data", {}),
        ("screenspot-pro", "Chinese instructions", "screenspot-pro", f"{LISTS}/ScreenSpot_Pro_data", {"language": "cn"}),
        ("osworld-g", "original instructions", "osworld-g", f"{LISTS}/OS_G_data", {}),
        ("osworld-g", "refined instructions", "osworld-g-refined", f"{LISTS}/OS_G_Refine_data", {}),
    ],
)
def test_a_known_edition_is_recognised(
    shared_data: Path, dataset: str, name: str, bench: str, folder: str, options: dict[str, str]
) -> None:
    steps = steps_of(bench, shared_data / folder, **options)
    known = next(each for each in known_editions(dataset) if each.name == name)
    assert KnownEdition.of(name, known.source, labels_of(steps), known.note) == known
    assert Edition.of(dataset, labels_of(steps)).names == (name,)


LARGE = {"androidcontrol": "ui_s1", "ui-vision": LISTS, "mmbench-gui-l2": LISTS, "cagui-grounding": "cagui_grounding"}


@pytest.mark.ci
@every_row(("bench", "folder"), LARGE.items())
def test_a_large_known_edition_is_recognised(shared_data: Path, bench: str, folder: str) -> None:
    (known,) = known_editions(bench)
    assert KnownEdition.of(known.name, known.source, labels_of(steps_of(bench, shared_data / folder)), known.note) == known


def test_screenspot_v2_with_equal_counts_is_told_apart(shared_data: Path, tmp_path: Path) -> None:
    folder = older_screenspot(shared_data, tmp_path / "older")
    newer = labels_of(steps_of("screenspot-v2", shared_data / LISTS / "ScreenSpot_V2_data"))
    older = labels_of(steps_of("screenspot-v2", folder))
    assert str(Edition.of("screenspot-v2", older)) == "edition 'older' of screenspot-v2"
    unlike = [key for key in newer if newer[key] != older[key]]
    assert len(unlike) == 15
    place = PARTS.index("instructions")
    assert sum(newer[key][place] != older[key][place] for key in unlike) == 1
    both = {key: newer[key] for key in list(newer)[:20] if key not in unlike}
    assert Edition.of("screenspot-v2", both).names == ("older", "newer")  # a part on which they agree
    assert Edition.of("screenspot-v2", {key: newer[key] for key in unlike[:1]}).names == ("newer",)

    found = examine(load_benchmark("screenspot-v2", folder))
    assert "the labels are edition 'older' of screenspot-v2" in [remark.what for remark in found.remarks]
    file = folder / "screenspot_desktop_v2_convert.json"
    listed = json.loads(file.read_text(encoding="utf-8"))
    listed[0]["bbox"][2] += 1
    file.write_text(json.dumps(listed), encoding="utf-8")
    (remark,) = [each for each in examine(load_benchmark("screenspot-v2", folder)).remarks if "edition" in each.what]
    assert re.search(r"an unknown edition .* \(digest \w{12}\), not those of edition 'older' at 1 step of 1,272", remark.what)
    assert remark.examples == ["screenspot-v2/screenspot_desktop_v2_0#0"]


def test_a_sample_set_names_the_edition_that_fills_it(shared_data: Path, tmp_path: Path) -> None:
    names = [name for name in list_sample_sets() if name.startswith("screenspot-v2")]
    newer, older = shared_data / LISTS / "ScreenSpot_V2_data", older_screenspot(shared_data, tmp_path / "older")
    for edition, folder in (("newer", newer), ("older", older)):
        benchmark = load_benchmark("screenspot-v2", folder)
        for name in names:
            filled, _ = labels_of_set(benchmark, select(benchmark, Choice(sample_set=name)), get_sample_set(name))
            assert edition in filled.names, name
            assert get_sample_set(name).editions[edition] == filled.digest, name


def test_every_set_of_a_data_set_with_editions_has_their_digests() -> None:
    for name in list_sample_sets():
        sample_set = get_sample_set(name)
        (dataset,) = sample_set.datasets
        known = {each.name for each in known_editions(dataset)}
        assert sample_set.editions.keys() <= known, name
        if known and not sample_set.finish and not sample_set.unnamed:
            assert sample_set.editions, name


@every_row(
    ("change", "part"),
    [
        ({"instruction": "do that"}, "instructions"),
        ({"low_level_instruction": "tap"}, "instructions"),
        ({"action": Click(point=Point(500, 501))}, "references"),
        ({"alternatives": (Press(button="BACK"),)}, "references"),
        ({"extras": {"text_patterns": ["a+"]}}, "references"),
        ({"targets": Boxes([[400, 400, 600, 601]])}, "targets"),
        ({"extras": {"polygon": [[0, 0], [1, 0], [0, 1]]}}, "targets"),
        ({"elements": Boxes()}, "elements"),
    ],
)
def test_each_part_of_a_label_has_its_digest(change: dict[str, Any], part: str) -> None:
    before, after = LabelDigest.of(TASK), LabelDigest.of(TASK.model_copy(update=change))
    assert [name for name, one, other in zip(PARTS, before, after, strict=True) if one != other] == [part]


@every_row("change", [{"groups": {"a": "b"}}, {"extras": {"note": 1}}, {"screenshot": "t.png"}, {"split": "train"}])
def test_what_is_no_label_does_not_make_another_edition(change: dict[str, Any]) -> None:
    assert LabelDigest.of(TASK.model_copy(update=change)) == LabelDigest.of(TASK)


def test_neither_the_unit_of_a_file_nor_rounding_makes_another_edition() -> None:
    width, height = 1280, 2400
    for x, y in [(x, y) for x in range(0, width, 7) for y in (0, 1, 1199, 2400)]:
        one, other = (
            step(Click(point=point), targets=Boxes([[*point, *point]]), screenshot_size=(width, height))
            for point in (Point(x * 1000.0 / width, y * 1000.0 / height), Point(x / width * 1000.0, (y / height) * 1000.0))
        )
        assert LabelDigest.of(one) == LabelDigest.of(other), (x, y)


def test_labels_of_no_known_edition_are_called_unknown() -> None:
    labels = {StepKey("b", "", "e", 0): LabelDigest.of(TASK)}
    edition = Edition.of("gui-odyssey", labels)
    assert str(edition) == f"an unknown edition of gui-odyssey (digest {edition.digest})"
    own = Edition.of("own", labels)
    assert (edition.line, own.line, own.digest) == (str(edition), "", edition.digest)
    typed = {StepKey("b", "", "e", 0): LabelDigest.of(step(Type(text="a\ud800")))}  # half an emoji
    assert Edition.of("own", typed).digest != edition.digest


def test_every_file_of_editions_is_valid() -> None:
    for file in (sample_sets_folder().parent / "editions").glob("*.json"):
        known = known_editions(file.stem)
        assert len({each.name for each in known}) == len(known)
        assert [each.name for each in known if len(each.marks) != 8 * each.steps] == []
