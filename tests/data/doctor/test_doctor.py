"""``guieval doctor`` and what it is made of: counts against published ones, screenshots, damage, and every real folder."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, ClassVar

import pytest
from PIL import Image

from guieval.actions import Action, Click, Point, Type, Unsupported
from guieval.data.benchmark import PublishedCount
from guieval.data.doctor.counts import Counts, Verdict, compare
from guieval.data.doctor.examine import Examination, examine
from guieval.registry import benchmarks, load_benchmark
from tests.command_line import CommandLine
from tests.data.placed import Placed, placed
from tests.pictures import orientation
from tests.rows import every_row

SIZE = (30, 60)


class Scripted(Placed):
    """Three episodes: two of split test (subsets a and b), one of split train, of two steps each."""

    size: ClassVar[tuple[int, int]] = SIZE
    first: ClassVar[Action] = Click(point=Point(500, 500))

    def __init__(self, folder: Path) -> None:
        more: dict[str, Any] = {"groups": {"app": "Kaffi"}, "screenshot_size": self.size}
        parts = (("1", "a", "test"), ("2", "b", "test"), ("3", "b", "train"))
        super().__init__([placed(name, [self.first, Type(text="tea")], subset, split, **more) for name, subset, split in parts])
        self.root = folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in "123":
        for index in range(2):
            Image.new("RGB", SIZE).save(tmp_path / f"{name}_{index}.png")
    return tmp_path


def count(name: str, steps: int | None, **more: Any) -> PublishedCount:
    return PublishedCount(name, steps, "a paper", **more)


def remarks(found: Examination) -> list[str]:
    return [f"{remark.weight}: {remark.what}" for remark in found.remarks]


def test_paths_of_windows_are_named(folder: Path, guieval: CommandLine) -> None:
    """The files are there, so that "the folder has no images" would send their owner the wrong way."""
    (folder / "s").mkdir()
    (folder / "1_0.png").rename(folder / "s" / "x.png")
    line = {"episode_id": "a", "frame": "unified", "instruction": "Tea.", "steps": []}
    shown = {"screenshot": "s\\x.png", "screenshot_size": SIZE, "action": {"type": "CLICK", "point": [1, 1]}}
    (folder / "episodes.jsonl").write_text(json.dumps({**line, "steps": [shown]}) + "\n")
    done = guieval("doctor", "episodes", "--data", folder)
    assert done.code == 1 and "Windows' separator \\: 1 of 1" in done.out and "no images" not in done.out


def test_a_key_given_twice_is_an_error(folder: Path, guieval: CommandLine) -> None:
    """Readers of JSON keep the last of the two, so that half of what the row says would be lost without a word."""
    shown = {"screenshot": "1_0.png", "action": {"type": "CLICK", "point": [1, 1]}}
    line = json.dumps({"episode_id": "a", "frame": "unified", "instruction": 'say "a": b', "steps": [shown]})
    for given, damaged in ((line, 0), (line.replace(": ", " :  "), 0), (f'{line[:-1]}, "episode_id": "b"}}', 1)):
        (folder / "episodes.jsonl").write_text(f"{given}\n")
        done = guieval("doctor", "episodes", "--data", folder)
        assert done.code == damaged and ("field episode_id: is given twice" in done.out) == bool(damaged), done


def test_everything_is_counted(folder: Path) -> None:
    found = examine(Scripted(folder))
    assert remarks(found) == []
    assert (found.whole.episodes, found.whole.steps, found.screenshots) == (3, 6, 6)
    assert found.whole.types == {"CLICK": 3, "TYPE": 3}
    parts = {part: (counts.episodes, counts.steps, dict(counts.types)) for part, counts in found.parts.items()}
    assert parts == dict.fromkeys([("test", "a"), ("test", "b"), ("train", "b")], (1, 2, {"CLICK": 1, "TYPE": 1}))
    assert found.groups == {"app": {"Kaffi": 6}}


@every_row(
    ("counts", "expected", "example"),
    [
        (count("b", 2, episodes=1, split="train", subset="b"), "note: the counts agree", "b: 1 episode, 2 steps (a paper)"),
        (count("all", 165, episodes=90), "note: only a part", "all: 3 of 90 episodes, 6 of 165 steps (a paper)"),
        (count("all", 5), "warning: the counts differ", "all: 6 steps instead of 5 (a paper)"),
    ],
)
def test_published_counts_are_compared(
    counts: PublishedCount, expected: str, example: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And those of a part that is not there are not printed."""
    monkeypatch.setattr(Scripted, "published", (counts, count("validation", 9, split="validation")))
    found = examine(Scripted(folder))
    assert len(found.remarks) == 1 and remarks(found)[0].startswith(expected), remarks(found)
    assert found.remarks[0].examples == [example]


def test_screenshots_that_are_missing_damaged_or_of_another_size(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "1_0.png").unlink()
    (folder / "2_0.png").write_bytes((folder / "2_0.png").read_bytes()[:-20])
    (folder / "2_1.png").write_bytes(b"text")
    Image.new("RGB", (60, 30)).save(folder / "3_1.png")
    found = examine(Scripted(folder))
    assert remarks(found) == [
        "error: missing screenshots: 1 of 6",
        "error: unusable screenshots: 2 of 6",
        "error: screenshots of another size than recorded: at 1 step",
    ]
    assert found.remarks[0].examples == ["scripted/a/1#0: 1_0.png"]
    assert "2_0.png is truncated" in found.remarks[1].examples[0] and "no" in found.remarks[1].examples[1]
    assert found.remarks[2].examples == ["scripted/b/3#1: 3_1.png is 60x30 pixels, but its record says 30x60"]
    assert all(remark.why for remark in found.remarks)


def test_turned_and_transparent_screenshots_are_named(folder: Path) -> None:
    Image.new("RGB", SIZE[::-1]).save(folder / "1_0.png", exif=orientation(6))
    Image.new("RGB", SIZE).save(folder / "1_1.png", exif=orientation(8))
    Image.new("RGBA", SIZE, (0, 0, 0, 0)).save(folder / "2_0.png")
    Image.new("P", SIZE).save(folder / "2_1.png", transparency=0)
    found = examine(Scripted(folder))
    assert remarks(found) == [
        "error: screenshots of another size than recorded: at 1 step",
        "warning: screenshots that their EXIF orientation turns: 2 of 6",
        "note: screenshots that can be transparent: 2 of 6",
    ]
    assert found.remarks[0].examples == [
        "scripted/a/1#1: 1_1.png is 60x30 pixels once it is turned as its EXIF orientation 8 says, "
        "but its record says 30x60, the size of the unturned file"
    ]
    assert found.remarks[1].examples == [
        "scripted/a/1#0: 1_0.png has orientation 6, turned right by 90 degrees",
        "scripted/a/1#1: 1_1.png has orientation 8, turned left by 90 degrees",
    ]
    assert found.remarks[2].examples == ["scripted/b/2#0: 2_0.png", "scripted/b/2#1: 2_1.png"]


def test_a_screenshot_outside_the_folder_is_no_missing_one_and_none_at_all_means_annotations_only(folder: Path) -> None:
    (folder / "inner").mkdir()
    for path in folder.glob("*.png"):
        (folder / "inner" / path.name).write_bytes(path.read_bytes())
    (folder / "inner" / "1_0.png").unlink()
    (folder / "inner" / "1_0.png").symlink_to(folder / "1_0.png")
    (tmp := folder / "none").mkdir()
    assert remarks(examine(Scripted(tmp))) == ["note: annotations only: none of the 6 screenshots is here"]
    (remark,) = examine(Scripted(folder / "inner")).remarks
    assert remark.what == "unusable screenshots: 1 of 6" and "leads out of its folder" in remark.examples[0]


def test_labels_without_a_unified_name_are_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scripted, "first", Unsupported(name="hover"))
    (remark,) = examine(Scripted(folder)).of("note")
    assert "3 of 6 steps" in remark.what and remark.examples == ["hover: 3"]


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """UI-R1's format with two made-up episodes."""
    benchmarks()["ui-r1"].write_example(tmp_path)
    return tmp_path


def change_row(folder: Path, number: int, **values: Any) -> None:
    file = folder / "ac_test.json"
    rows = json.loads(file.read_text())
    rows[number].update(values)
    file.write_text(json.dumps(rows))


def test_damaged_rows_are_named_and_the_rest_is_looked_at(example: Path) -> None:
    whole = examine(load_benchmark("ui-r1", example))
    assert not whole.of("error") and whole.whole.episodes == 2
    change_row(example, 0, gt={"action_type": "click", "x": "12", "y": 3})
    found = examine(load_benchmark("ui-r1", example))
    (error,) = found.of("error")
    assert error.what == "damaged rows or episodes: 1" and found.whole.episodes == 1
    assert "ac_test.json, row 0, field gt, field x: expected a number, got '12'" in error.examples[0]
    change_row(example, -1, gt={"action_type": "dance"})
    found = examine(load_benchmark("ui-r1", example))
    assert found.of("error")[0].what == "nothing could be read; damaged rows or episodes: 2" and found.whole.steps == 0


def test_the_command(guieval: CommandLine, example: Path, tmp_path: Path) -> None:
    command = ("doctor", "ui-r1", "--data", example)
    done = guieval(*command)
    assert done.code == 0 and "no errors" in done.out and "note: only a part of what is published is here" in done.out
    read = json.loads(guieval(*command, "--json").out)
    assert read["counts"]["episodes"] == 2 and read["benchmark"] == "ui-r1"
    assert [remark["weight"] for remark in read["remarks"]] == ["note", "note"]
    assert "an unknown edition of androidcontrol (digest" in read["remarks"][1]["what"]
    assert read["edition"]["names"] == [] and read["targets"] == {"boxes": 0, "steps": 0}
    counts = json.loads(guieval("doctor", "demo", "--statistics", "--json").out)
    shown = guieval("doctor", "demo", "--statistics", "--plot", tmp_path / "a.svg").out
    drawn = re.findall(r">([\w, .:()%]+)</text>", (tmp_path / "a.svg").read_text(encoding="utf-8"))
    assert {"37", "CLICK", *counts["apps"], "steps (dashed: mean 6.58)"} <= {*drawn}
    assert (counts["episodes"], counts["steps"], counts["types"]["CLICK"], len(counts["apps"])) == (12, 79, 37, 6)
    assert sum(counts["lengths"].values()) == 12 and sum(int(k) * n for k, n in counts["lengths"].items()) == 79
    assert "a target on 37 of 37 clicks" in shown and "CLICK          37  46.8%" in shown
    change_row(example, 0, gt={"action_type": "dance"})
    assert "1 damaged episode not counted" in guieval(*command, "--statistics").out
    done = guieval(*command)
    assert done.code == 1 and "error: damaged rows or episodes: 1" in done.out and "got 'dance'" in done.out
    change_row(example, -1, task=5)
    done = guieval(*command)
    assert done.code == 1 and "nothing could be read" in done.out


def test_an_overlay_is_looked_at_too(guieval: CommandLine, example: Path, tmp_path: Path) -> None:
    overlay = tmp_path / "overlay.jsonl"
    overlay.write_text('{"episode_id": "0", "step_index": 0, "targets": [[0, 0, 1, 1]]}\n')
    (step, *_) = load_benchmark("ui-r1", example).load(load_benchmark("ui-r1", example).index()[0]).steps
    command = ("doctor", "ui-r1", "--data", example, "--overlay", overlay)
    done = guieval(*command)
    expected = "outside every target" if isinstance(step.action, Click) else "no warnings"
    assert done.code == 0 and expected in done.out
    overlay.write_text('{"episode_id": "0", "step_index": 99, "targets": [[0, 0, 1, 1]]}\n')
    assert "has no step 99" in guieval.sentence(*command)


def test_mistakes_are_one_sentence(guieval: CommandLine, example: Path, tmp_path: Path) -> None:
    command = ("doctor", "ui-r1", "--data", example)
    for arguments, words in (
        (("doctor", "--data", example), "--data needs the name of the benchmark"),
        (("doctor", "ui-r2", "--data", example), "did you mean 'ui-r1'?"),
        (("doctor", "ui-r1", "--data", tmp_path / "images"), "guieval data prepare ui-r1"),
        ((*command, "--sample-set", "ac-8444"), "unknown sample set 'ac-8444'"),
        ((*command, "--set", "bench_options.fast=1"), "has no option 'fast'"),
        (("doctor", "--statistics"), "--statistics needs the name of the benchmark"),
        ((*command, "--plot", tmp_path / "a.svg"), "--plot draws what --statistics prints"),
    ):
        assert words in guieval.sentence(*arguments)


def test_a_data_folder_that_does_not_exist_is_not_created(guieval: CommandLine, tmp_path: Path) -> None:
    """Not even by a benchmark that draws its own data."""
    for bench in ("demo", "androidcontrol", "episodes"):
        assert "does not exist" in guieval.sentence("doctor", bench, "--data", tmp_path / "nope")
    assert list(tmp_path.iterdir()) == []


# --- published counts ---

# Nine episodes of two clicks and a stop: six test ones of app t (one subset each of a and b in turn), three training ones of o.
DATA = Counts()
OTHER = {"CLICK": 20, "TYPE": 7, "STOP": 9}
for number in range(9):
    app, split = ("o", "train") if number % 3 == 0 else ("t", "test")
    DATA.add(split, "ab"[number % 2], [({"app": app}, "CLICK"), ({"app": app}, "CLICK"), ({"app": app}, "STOP")])


@every_row(
    ("result", "verdict", "sentence"),
    [
        (count("all", 27, types={"CLICK": 18, "STOP": 9}), "agrees", "all: 27 steps (a paper)"),
        (count("o", 9, episodes=3, groups={"app": "o"}), "agrees", "o: 3 episodes, 9 steps (a paper)"),
        (count("train", 9, split="train"), "agrees", "train: 9 steps (a paper)"),
        (count("b", 12, episodes=4, subset="b"), "agrees", "b: 4 episodes, 12 steps (a paper)"),
        (count("b, o", 3, subset="b", groups={"app": "o"}), "agrees", "b, o: 3 steps (a paper)"),
        (count("one", 1, split="val"), "absent", "one: 0 of 1 step (a paper)"),
        (count("all", 1_000, episodes=300), "part", "all: 9 of 300 episodes, 27 of 1,000 steps (a paper)"),
        # what kinds of steps a part holds says nothing yet
        (count("all", 30, types={"CLICK": 20}), "part", "all: 27 of 30 steps (a paper)"),
        # where only episodes are published
        (count("all", None, episodes=9), "agrees", "all: 9 episodes, 27 steps (a paper)"),
        (count("all", None, episodes=508), "part", "all: 9 of 508 episodes, 27 steps (a paper)"),
        (count("all", None, episodes=8), "differs", "all: 9 episodes instead of 8, 27 steps (a paper)"),
        (count("one", None, episodes=1, split="val"), "absent", "one: 0 of 1 episode, 0 steps (a paper)"),
        (count("all", 25, episodes=9), "differs", "all: 9 episodes, 27 steps instead of 25 (a paper)"),
        (count("all", 30, episodes=8), "differs", "all: 9 episodes instead of 8, 27 of 30 steps (a paper)"),
        (count("all", 27, types=OTHER), "differs", "all: 27 steps, 18 CLICK instead of 20, 0 TYPE instead of 7 (a paper)"),
    ],
)
def test_a_count_is_compared_with_the_same_part_of_the_data(result: PublishedCount, verdict: Verdict, sentence: str) -> None:
    [comparison] = compare([result], DATA)
    assert (comparison.verdict, str(comparison)) == (verdict, sentence)


@every_row(
    ("result", "nearest"),
    [
        ((count("with a finish step", 27), count("without", 18)), "with a finish step"),
        ((count("without", 18), count("with a finish step", 28)), "with a finish step"),
        ((count("more episodes", 27, episodes=12), count("these", 27, episodes=10)), "these"),
        ((count("typed", 27, types={"TYPE": 27}), count("clicked", 27, types={"CLICK": 18})), "clicked"),
    ],
)
def test_of_several_figures_for_one_part_the_nearest_is_meant(result: tuple[PublishedCount, ...], nearest: str) -> None:
    assert [each.published.name for each in compare(result, DATA)] == [nearest]
    apart = compare([*result, count("train", 9, split="train")], DATA)
    assert [each.published.name for each in apart] == [nearest, "train"]


# --- real folders ------------------------------------------------------------------------------------------------------

REAL = {
    ("agentnetbench", "agentnetbench"): (54, 0),
    ("aitz", "aitz_example"): (4, 1),
    ("androidcontrol", "ui_s1"): (8444, 4),
    ("androidcontrol-low", "ui_s1"): (8444, 5),
    ("cagui-grounding", "cagui_grounding"): (3000, 1),
    ("mind2web", "uground_offline"): (6407, 2),
    ("mmbench-gui-l2", "screenspot_pro_format_annotations"): (3594, 1),
    ("onekey", "zte_onekey"): (48, 0),
    ("osworld-g", "osworld_g"): (18, 0),
    ("osworld-g-refined", "osworld_g"): (18, 0),
    ("osworld-g-refined", "screenspot_pro_format_annotations"): (564, 2),
    ("osworld-g", "screenspot_pro_format_annotations"): (564, 1),
    ("screenspot", "screenspot"): (165, 0),
    ("screenspot-pro", "screenspot_pro_format_annotations"): (1581, 0),
    ("screenspot-v2", "screenspot"): (149, 0),
    ("screenspot-v2", "screenspot_pro_format_annotations"): (1272, 2),
    ("ui-r1", "ui_r1"): (7868, 5),
    ("ui-vision", "ui_vision"): (192, 0),
    ("ui-vision", "screenspot_pro_format_annotations"): (5479, 1),
}
"""Steps and warnings of the real folders that a loader reads."""


def check_real_folder(name: str, folder: Path) -> None:
    found = examine(load_benchmark(name, folder))
    assert found.of("error") == []
    assert (found.whole.steps, len(found.of("warning"))) == REAL[name, folder.name], [remark.what for remark in found.remarks]
    assert all(remark.why and remark.examples for remark in found.of("warning"))
    told = " ".join(remark.what for remark in found.remarks)
    if folder.name in ("aitz_example", "screenspot", "osworld_g", "ui_vision"):
        assert "only a part of what is published is here" in told
    else:
        assert "the counts agree with what is published" in told or not benchmarks()[name].published
        assert "only a part" not in told


@every_row(("name", "data"), [each for each in REAL if REAL[each][0] < 2000])
def test_real_folders_have_no_error_and_no_unexplained_warning(name: str, data: str, shared_data: Path) -> None:
    check_real_folder(name, shared_data / data)


@pytest.mark.ci
@every_row(("name", "data"), [each for each in REAL if REAL[each][0] >= 2000])
def test_large_real_folders_have_no_error_and_no_unexplained_warning(name: str, data: str, shared_data: Path) -> None:
    check_real_folder(name, shared_data / data)


def test_a_sample_set_of_the_real_lists(shared_data: Path) -> None:
    benchmark = load_benchmark("screenspot-pro", shared_data / "screenspot_pro_format_annotations")
    found = examine(benchmark, "screenspot-pro-cad-261")
    assert (found.whole.episodes, found.whole.steps, found.groups["group"]) == (261, 261, {"CAD": 261})
    notes = [remark.what for remark in found.of("note")]
    assert "has the whole sample set 'screenspot-pro-cad-261': 261 episodes, 261 steps" in notes
