"""ScreenSpot v1 and v2 in every layout they are handed around in, and the real screenshots against their boxes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from guieval.benchmarks._examples.grounding import tapped_elements

from guieval.actions import Click, Point
from guieval.data.benchmark import ABCBenchmark
from guieval.data.screenshots import read_screenshot
from guieval.errors import DataError, UsageError
from guieval.registry import benchmarks, load_benchmark
from guieval.steps import StepTaskModel

PLATFORMS = ("desktop", "mobile", "web")
PREFIXES = {"desktop": "pc", "mobile": "mobile", "web": "web"}
SIZE = (200, 100)


def row(name: str, **changes: Any) -> dict[str, Any]:
    """A row as the authors write it."""
    return {
        "img_filename": name,
        "bbox": [20, 30, 40, 50],
        "instruction": "close",
        "data_type": "text",
        "data_source": "ios",
        **changes,
    }


def converted(name: str, **changes: Any) -> dict[str, Any]:
    """A row as MAI-UI converted it."""
    return {
        "img_filename": name,
        "bbox": [20, 30, 60, 80],
        "instruction": "close",
        "id": f"id of {name}",
        "platform": "v2",
        "img_size": list(SIZE),
        "ui_type": "icon",
        "group": "Dev",
        **changes,
    }


def write_image(path: Path, size: tuple[int, int] = SIZE) -> None:
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, "white").save(path)


def write_lists(root: Path, pattern: str, rows: dict[str, list[dict[str, Any]]]) -> Path:
    for platform in PLATFORMS:
        file = root / pattern.format(platform)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(rows.get(platform, [])), encoding="utf-8")
    return root


def steps_of(benchmark: ABCBenchmark) -> list[StepTaskModel]:
    episodes = [benchmark.load(ref) for ref in benchmark.index()]
    assert all(len(episode) == 1 for episode in episodes)
    return [episode.steps[0] for episode in episodes]


def only_step(root: Path, item: dict[str, Any], name: str = "screenspot") -> StepTaskModel:
    suffix = "_v2" if name.endswith("v2") else ""
    (step,) = steps_of(load_benchmark(name, write_lists(root, f"screenspot_{{}}{suffix}.json", {"mobile": [item]})))
    return step


@pytest.mark.parametrize(
    ("name", "lists", "image", "stored", "make"),
    [
        ("screenspot", "screenspot_{}.json", "{prefix}_a.png", "screenspot_imgs/{prefix}_a.png", row),
        ("screenspot", "annotations_v1/screenspot_{}.json", "{platform}/a.png", "images/{platform}/a.png", row),
        ("screenspot-v2", "screenspot_{}_v2.json", "{prefix}_a.png", "screenspotv2_image/{prefix}_a.png", row),
        ("screenspot-v2", "annotations_v2/screenspot_{}_v2.json", "{prefix}_a.png", "images/{platform}/a.png", converted),
        ("screenspot-v2", "annotations_v2/screenspot_{}_v2.json", "{prefix}_a.png", "images/{prefix}_a.png", converted),
        ("screenspot-v2", "screenspot_{}_v2.json", "{prefix}_a.png", "screenspotv2_image/{prefix}_a.png", converted),
    ],
)
def test_every_layout_gives_the_same_target(tmp_path: Path, name: str, lists: str, image: str, stored: str, make: Any) -> None:
    rows = {}
    for platform, prefix in PREFIXES.items():
        rows[platform] = [make(image.format(prefix=prefix, platform=platform))]
        write_image(tmp_path / stored.format(prefix=prefix, platform=platform))
    benchmark = load_benchmark(name, write_lists(tmp_path, lists, rows))
    steps = steps_of(benchmark)
    assert [step.groups["platform"] for step in steps] == list(PLATFORMS)
    assert len({step.episode_id for step in steps}) == 3
    for step in steps:
        assert read_screenshot(benchmark.root, step.screenshot, step.screenshot_size).size == SIZE
        assert step.action == Click(point=Point(200, 550))
        assert [tuple(box) for box in step.boxes] == [(100, 300, 300, 800)]
        assert step.groups["element"] == ("text" if make is row else "icon")
        assert (step.benchmark, step.setting, step.instruction) == (name, "grounding", "close")


def test_rows_are_named_by_list_and_place_and_keep_their_source(tmp_path: Path) -> None:
    write_image(tmp_path / "screenspot_imgs/a.png")
    rows = {"desktop": [row("a.png")], "web": [row("a.png", data_source="shop"), row("a.png")]}
    steps = steps_of(load_benchmark("screenspot", write_lists(tmp_path, "screenspot_{}.json", rows)))
    assert [step.episode_id for step in steps] == ["screenspot_desktop_0", "screenspot_web_0", "screenspot_web_1"]
    assert [step.extras["data_source"] for step in steps] == ["ios", "shop", "ios"]


def test_the_index_needs_no_image(tmp_path: Path) -> None:
    benchmark = load_benchmark("screenspot", write_lists(tmp_path, "screenspot_{}.json", {"web": [row("none.png")]}))
    (ref,) = benchmark.index()
    assert (ref.key.episode_id, ref.length) == ("screenspot_web_0", 1)
    with pytest.raises(DataError, match=r"web\.json, row 0, field img_filename: there is no image 'screenspot_imgs/none\.png'"):
        benchmark.load(ref)


def test_a_stated_size_needs_no_image_at_all(tmp_path: Path) -> None:
    assert only_step(tmp_path, converted("mobile_a.png"), "screenspot-v2").screenshot_size == SIZE


def test_a_box_may_reach_over_the_edge_but_its_middle_may_not(tmp_path: Path) -> None:
    step = only_step(tmp_path, converted("a.png", bbox=[150, 50, 210, 80]), "screenspot-v2")
    assert [tuple(box) for box in step.boxes] == [(750, 500, 1050, 800)]
    with pytest.raises(DataError, match=r"row 0, field bbox: .*outside"):
        only_step(tmp_path, converted("a.png", bbox=[190, 50, 250, 80]), "screenspot-v2")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"bbox": [60, 30, 20, 80]}, "bbox"),
        ({"bbox": [20, 30, 40]}, "bbox"),
        ({"bbox": [20, 30, "40", 50]}, "bbox"),
        ({"bbox": None}, "bbox"),
        ({"ui_type": "button"}, "ui_type"),
        ({"ui_type": 3}, "ui_type"),
        ({"img_size": [0, 100]}, "img_size"),
        ({"img_size": [200.5, 100]}, "img_size"),
        ({"instruction": None}, "instruction"),
        ({"img_filename": 5}, "img_filename"),
        ({"id": ""}, "episode_id"),
    ],
)
def test_a_damaged_row_is_reported_by_file_row_and_field(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    with pytest.raises(DataError, match=rf"screenspot_mobile_v2\.json, row 0, field {field}: "):
        only_step(tmp_path, converted("a.png", **change), "screenspot-v2")


@pytest.mark.parametrize("missing", ["img_filename", "bbox", "instruction", "data_type"])
def test_a_missing_field_is_reported(tmp_path: Path, missing: str) -> None:
    write_image(tmp_path / "screenspot_imgs/a.png")
    item = {key: value for key, value in row("a.png").items() if key != missing}
    with pytest.raises(DataError, match="row 0, field (" + missing + "): is missing"):
        only_step(tmp_path, item)


def test_a_file_that_is_no_image_is_reported(tmp_path: Path) -> None:
    (tmp_path / "screenspot_imgs").mkdir()
    (tmp_path / "screenspot_imgs/a.png").write_text("hello")
    with pytest.raises(DataError, match=r"img_filename: the image 'screenspot_imgs/a\.png' is not a readable PNG"):
        only_step(tmp_path, row("a.png"))


def test_an_image_outside_the_folder_is_not_touched(tmp_path: Path) -> None:
    write_image(tmp_path / "secret.png")
    (tmp_path / "data/screenspot_imgs").mkdir(parents=True)
    with pytest.raises(DataError, match="there is no image"):
        only_step(tmp_path / "data", row("../../secret.png"))


def test_one_id_twice_is_refused(tmp_path: Path) -> None:
    rows = {"desktop": [converted("a.png")], "web": [converted("b.png"), converted("a.png")]}
    benchmark = load_benchmark("screenspot-v2", write_lists(tmp_path, "screenspot_{}_v2.json", rows))
    with pytest.raises(
        DataError, match=r"web_v2\.json, row 1, field id: 'id of a\.png' is already that of .*desktop_v2\.json, row 0"
    ):
        benchmark.index()


@pytest.mark.parametrize(
    ("text", "problem"), [("{}", "expected a list"), ("[5]", "row 0: expected an object"), ("[", "is not JSON")]
)
def test_a_list_that_is_none_is_reported(tmp_path: Path, text: str, problem: str) -> None:
    write_lists(tmp_path, "screenspot_{}.json", {})
    (tmp_path / "screenspot_mobile.json").write_text(text)
    with pytest.raises(DataError, match=rf"screenspot_mobile\.json.*{problem}"):
        load_benchmark("screenspot", tmp_path).index()


@pytest.mark.parametrize("name", ["screenspot", "screenspot-v2"])
def test_a_foreign_folder_is_refused_saying_what_was_expected(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=rf"holds no screenspot_desktop.*comes from .*`guieval prepare {name} --source"):
        load_benchmark(name, tmp_path)


def test_damaged_rows_and_lists_are_skipped_only_on_request(tmp_path: Path) -> None:
    rows = {"desktop": [converted("a.png")], "mobile": [converted("b.png"), converted("c.png", ui_type="button")]}
    write_lists(tmp_path, "screenspot_{}_v2.json", rows)
    (tmp_path / "screenspot_web_v2.json").write_text('[{"img_filename": "d.p')
    benchmark = load_benchmark("screenspot-v2", tmp_path)
    with pytest.raises(DataError, match=r"screenspot_web_v2\.json: is not JSON"):
        benchmark.index()
    benchmark = benchmark.skipping_damaged()
    assert [episode.steps[0].episode_id for episode in benchmark] == ["id of a.png", "id of b.png"]
    assert [str(error).split("/")[-1].split(":")[0] for error in benchmark.skipped] == [
        "screenspot_web_v2.json",
        "screenspot_mobile_v2.json, row 1, field ui_type",
    ]


def test_half_a_download_is_refused(tmp_path: Path) -> None:
    write_lists(tmp_path, "screenspot_{}.json", {"web": [row("a.png")]})
    (tmp_path / "screenspot_mobile.json").unlink()
    with pytest.raises(UsageError, match=r"screenspot_mobile\.json' is missing"):
        load_benchmark("screenspot", tmp_path)


def test_empty_lists_and_unknown_options_are_refused(tmp_path: Path) -> None:
    write_lists(tmp_path, "screenspot_{}.json", {})
    with pytest.raises(UsageError, match="are empty"):
        load_benchmark("screenspot", tmp_path).index()
    with pytest.raises(UsageError, match="no option 'platform'"):
        load_benchmark("screenspot", tmp_path, platform="web")


def test_the_authors_form_and_the_converted_one_name_a_row_alike(tmp_path: Path) -> None:
    """As MAI-UI named its rows: by the list and the position in it."""
    write_image(tmp_path / "screenspotv2_image/a.png")
    rows = {"web": [row("a.png"), row("a.png")]}
    steps = steps_of(load_benchmark("screenspot-v2", write_lists(tmp_path, "screenspot_{}_v2.json", rows)))
    assert [step.episode_id for step in steps] == ["screenspot_web_v2_0", "screenspot_web_v2_1"]


@pytest.mark.parametrize("name", ["screenspot", "screenspot-v2"])
def test_the_example_holds_the_elements_that_it_was_made_of(tmp_path: Path, name: str) -> None:
    benchmarks()[name].write_example(tmp_path, episodes=4, seed=3)
    elements = tapped_elements(4, 3)
    steps = {step.instruction: step for step in steps_of(load_benchmark(name, tmp_path))}
    assert len(steps) == 4
    for element, platform in zip(elements, ("mobile", "desktop", "web", "mobile"), strict=True):
        step = steps[element.instruction]
        assert step.groups == {"platform": platform, "element": element.kind}
        x1, y1, x2, y2 = element.box
        assert tuple(step.boxes[0]) == pytest.approx((x1 / 0.36, y1 / 0.8, x2 / 0.36, y2 / 0.8))
        assert (tmp_path / step.screenshot).read_bytes() == element.png


@pytest.fixture(scope="module")
def real(shared_data: Path) -> Path:
    folder = shared_data / "screenspot"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    return folder


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("screenspot", {"desktop": (19, 18), "mobile": (43, 29), "web": (30, 26)}),
        ("screenspot-v2", {"desktop": (18, 18), "mobile": (40, 21), "web": (29, 23)}),
    ],
)
def test_real_rows_with_their_screenshots(real: Path, name: str, counts: dict[str, tuple[int, int]]) -> None:
    benchmark = load_benchmark(name, real)
    steps = steps_of(benchmark)
    expected = {
        (platform, kind): n for platform, both in counts.items() for kind, n in zip(("text", "icon"), both, strict=True)
    }
    assert Counter((step.groups["platform"], step.groups["element"]) for step in steps) == expected
    assert len({step.episode_id for step in steps}) == len(steps)
    for step in steps:
        (box,) = step.boxes
        assert isinstance(step.action, Click)
        assert box.x1 < step.action.point.x < box.x2
        assert box.y1 < step.action.point.y < box.y2
        assert read_screenshot(benchmark.root, step.screenshot, step.screenshot_size).size == step.screenshot_size
    assert steps == steps_of(load_benchmark(name, real))


def test_both_versions_mostly_mark_the_same_places(real: Path) -> None:
    """v2 moved few boxes, so a box read in the wrong form would show."""

    def boxes(name: str) -> set[tuple[str, tuple[float, ...]]]:
        steps = steps_of(load_benchmark(name, real))
        return {(step.screenshot, tuple(round(value, 6) for value in step.boxes[0])) for step in steps}

    old, new = boxes("screenspot"), boxes("screenspot-v2")
    assert len(old & new) > 0.8 * len(new)


@pytest.mark.parametrize("folder", ["", "ScreenSpot_V2_data"])
def test_the_full_list_of_v2_has_the_published_cells(shared_data: Path, folder: str) -> None:
    root = shared_data / "screenspot_pro_format_annotations" / folder
    if not root.is_dir():
        pytest.skip(f"no {root}")
    steps = steps_of(load_benchmark("screenspot-v2", root))
    cells = Counter((step.groups["platform"], step.groups["element"]) for step in steps)
    assert cells == {
        ("mobile", "text"): 290,
        ("mobile", "icon"): 211,
        ("desktop", "text"): 194,
        ("desktop", "icon"): 140,
        ("web", "text"): 234,
        ("web", "icon"): 203,
    }
    every, *parts = benchmarks()["screenspot-v2"].published
    assert {(part.groups["platform"], part.groups["element"]): part.steps for part in parts} == cells
    assert every.steps == len(steps) == 1272
