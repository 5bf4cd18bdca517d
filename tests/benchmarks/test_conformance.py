"""Every benchmark that is found passes the conformance suite, and the suite notices each kind of broken promise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from PIL import Image

from guieval.actions import ActionSpace, Box, Boxes, Click, Point, Stop, Type, Wait
from guieval.conformance import check_benchmark, check_benchmarks
from guieval.data.benchmark import ABCBenchmark, EpisodeRef, PublishedCount
from guieval.errors import DataError, UsageError
from guieval.registry import benchmarks, load_benchmark
from guieval.steps import Episode, EpisodeKey, StepTaskModel
from tests.rows import every_row

VARIANTS = {"aitz-low", "androidcontrol-curated-low", "gui-odyssey-low", "hypertrack-low", "osworld-g-refined"}
"""Benchmarks whose files are those of another one, with other names or words."""


@every_row("name", lambda: sorted(benchmarks().keys() - VARIANTS))
def test_every_benchmark_conforms(name: str, tmp_path: Path) -> None:
    """Every format with a tenth of the damage that ``guieval dev check`` does."""
    assert [str(finding) for finding in check_benchmark(benchmarks()[name], tmp_path, most_damages=20)] == []


@pytest.mark.ci
@every_row("name", benchmarks)
def test_every_benchmark_conforms_under_all_damage(name: str, tmp_path: Path) -> None:
    assert [str(finding) for finding in check_benchmark(benchmarks()[name], tmp_path)] == []


class Small(ABCBenchmark):
    """A benchmark of one JSONL file, one episode a line, that breaks one promise at a time."""

    name = title = dataset = "small"
    source = "rows.jsonl"
    paper = licence = "none stated"
    protocol = "guievalkit"
    action_space = ActionSpace(frozenset({"CLICK", "TYPE"}), frozenset(), frozenset())
    fault: ClassVar[str] = ""
    loaded: ClassVar[int] = 0

    def __init__(self, root: Path, **options: Any) -> None:
        if self.fault == "takes any option":
            options = {}
        super().__init__(root, **options)
        self.file = root / "rows.jsonl"
        if self.fault == "takes any folder":
            return
        if not self.file.is_file():
            raise self.wrong_folder(root, "rows.jsonl")

    def lines(self) -> list[str]:
        if self.fault == "takes any folder" and not self.file.is_file():
            return []
        try:
            return self.file.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            raise DataError(f"{self.file}: is not text") from None

    @staticmethod
    def sound(field: str, value: Any) -> bool:
        if field == "at":
            return isinstance(value, list) and len(value) == 2 and all(type(each) is float and 0 <= each <= 1 for each in value)
        return isinstance(value, str) and (value != "" or field == "goal")

    def row(self, number: int) -> dict[str, Any]:
        where = f"{self.file}, line {number + 1}"
        if self.fault == "leaks":
            return dict(json.loads(self.lines()[number]))
        try:
            row = json.loads(self.lines()[number])
        except ValueError:
            raise DataError(f"{where}: is not JSON") from None
        if not isinstance(row, dict):
            raise DataError(f"{where}: is not an object")
        for field in ("id", "goal", "image", "text" if "text" in row else "at"):
            if not self.sound(field, row.get(field)):
                if self.fault == "guesses" and field == "at":
                    row["at"] = [0.5, 0.5]
                    continue
                raise DataError("a value is wrong" if self.fault == "says nothing" else f"{where}, field {field}: is wrong")
        return row

    def index(self) -> Sequence[EpisodeRef]:
        refs = []
        for number in range(len(self.lines())):
            try:
                split = "train" if self.fault == "splits" else "test"
                length = 2 if self.fault == "miscounts" else 1
                refs.append(EpisodeRef(EpisodeKey(self.name, "", self.row(number)["id"]), length, number, split))
            except DataError as error:
                if self.fault == "drops rows":
                    continue
                if self.fault == "never skips":
                    raise
                self.refuse(error)
        if not refs and not self.skipped and self.fault != "takes any folder":
            raise self.wrong_folder(self.root, "row: rows.jsonl is empty")
        return refs[::-1] if self.fault == "restless" and self.count() % 2 else refs

    @classmethod
    def count(cls) -> int:
        cls.loaded += 1
        return cls.loaded

    def load(self, ref: EpisodeRef) -> Episode:
        row = self.row(ref.locator)
        point = Point(row["at"][0] * 1000, row["at"][1] * 1000) if "at" in row else Point(500.0, 500.0)
        action = Type(text=row["text"]) if "text" in row else Click(point=point)
        far = self.fault == "outside its box" and point.x == 250
        box = Box(900, 900, 990, 990) if far else Box(0, 0, 1000, 1000)
        if self.fault == "crossed box":
            box = Box(point.x + 5, point.y + 5, point.x - 5, point.y - 5)
        step = StepTaskModel(
            benchmark=self.name,
            dataset="other" if self.fault == "other data" else self.dataset,
            episode_id=row["id"],
            step_index=0,
            episode_length=1,
            instruction=row["goal"],
            screenshot="none.png" if self.fault == "no image" else row["image"],
            screenshot_size=(30, 40) if self.fault == "other size" else (30, 60),
            action=Wait() if self.fault == "outside the space" else action,
            alternatives=(Stop(),) if self.fault == "a wrong alternative" else (),
            targets=Boxes([box]),
            extras=self.extras(),
        )
        return Episode(steps=(step,))

    def extras(self) -> dict[str, Any]:
        if self.fault == "remembers":
            return {"loaded": self.count()}
        return {"pair": (1, 2)} if self.fault == "a tuple" else {}

    @classmethod
    def write_example(cls, folder: Path, *, episodes: int = 2, seed: int = 0) -> None:
        if cls.fault == "no example":
            raise NotImplementedError
        Image.new("RGB", (30, 60), "white").save(folder / "screen.png")
        goal = f"go {cls.count()}" if cls.fault == "writes at random" else "go"
        rows: list[dict[str, Any]] = [{"id": "a", "goal": goal, "at": [0.25, 0.5]}, {"id": "b", "goal": goal, "text": "hello"}]
        text = "".join(json.dumps({**row, "image": "screen.png"}) + "\n" for row in rows)
        (folder / "rows.jsonl").write_text(text, encoding="utf-8")


@every_row(
    ("fault", "checks"),
    [
        ("", set()),
        *[(fault, {"example"}) for fault in ("no example", "writes at random")],
        ("takes any option", {"options"}),
        ("takes any folder", {"wrong folder", "damage"}),
        ("restless", {"same twice", "damage"}),
        ("remembers", {"same twice"}),
        ("a tuple", {"round trip"}),
        *[(fault, {"index"}) for fault in ("miscounts", "splits")],
        *[(fault, {"fields"}) for fault in ("other data", "crossed box", "outside the space", "a wrong alternative")],
        ("outside its box", {"reference scores"}),
        ("no image", {"screenshots", "damage"}),
        ("other size", {"screenshots"}),
        *[(fault, {"damage"}) for fault in ("leaks", "guesses", "says nothing", "drops rows", "never skips")],
    ],
)
def test_the_suite_notices(fault: str, checks: set[str], tmp_path: Path) -> None:
    class Faulty(Small):
        """As its parent, with a fault."""

    Faulty.fault = fault
    if fault == "outside its box":
        Faulty.protocol = "seeclick-official"
    findings = check_benchmark(Faulty, tmp_path)
    assert {finding.check for finding in findings} == checks, [str(finding) for finding in findings]


def test_attributes_are_looked_at(tmp_path: Path) -> None:
    class Nameless(Small):
        """As its parent, badly described."""

        name = "Small One"
        source = "rows.jsonl."
        licence = ""
        published = (PublishedCount("all", 1, "", types={"CLICK": 2}), PublishedCount("all", 1, "here"))

    messages = [finding.message for finding in check_benchmark(Nameless, tmp_path) if finding.check == "attributes"]
    wrong = ("name 'Small One'", "source is", "licence is", "has no source", "more actions than", "same name")
    assert [word for word in wrong if not any(word in each for each in messages)] == []
    assert len(messages) == 6


def test_a_data_folder_can_be_looked_at_too(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    Small.write_example(data)
    before = {path.name: path.read_bytes() for path in data.iterdir()}
    assert check_benchmark(Small, tmp_path, data=data) == []
    assert {path.name: path.read_bytes() for path in data.iterdir()} == before
    (data / "screen.png").unlink()
    assert {finding.check for finding in check_benchmark(Small, tmp_path, data=data)} == {"screenshots"}


def test_benchmarks_are_checked_by_name() -> None:
    assert check_benchmarks(["ui-vision"]) == []


HASH = "0cf94392854b6b7224b63b93d7c8871a"
AITZ_STRAYS = ["notes.txt", "test/general/GENERAL-1/x.png", "7/7.json", "train/other/A-1/A-1.json"]
NO_ANDROIDCONTROL = r"no AndroidControl data.*<episode>\.json.*android_control_evaluation_std\.jsonl"


@every_row(
    ("name", "expected", "strays"),
    [
        ("agentnetbench", r"has no <task>\.json", ["settings.json"]),
        ("aitw", r"has no aitw_data_test\.json", ["aitw_data.json", "data/aitw_data_test.json"]),
        ("aitz", "has no <subset>.*AiTZ comes from", AITZ_STRAYS),
        ("amex", "has no instruction_anno", ["instruction_anno/notes.txt", "element_anno/1.json", "7.json"]),
        ("androidcontrol", NO_ANDROIDCONTROL, ["notes.txt", "7/8.json", "images/7_0.png"]),
        ("androidcontrol-curated", r"has no android_control_high_point\.json", []),
        ("cagui", "has no CAGUI_agent/domestic", ["domestic/notes.txt", "7/7.json", f"domestic/{HASH}/other.json"]),
        ("cagui-grounding", r"has no .*\.jsonl", []),
        ("mind2web", "has no cross_", []),
        ("mmbench-gui-l2", r"has no L2_annotations\.json", []),
        ("mobi-bench", r"has no <task>/0_answers\.json", []),
        ("onekey", "has no <case>/ref.json", ["case/0.png"]),
        ("osworld-g-refined", "has no benchmark/OSWorld-G_refined", ["OSWorld-G.json"]),
        *[(name, "has no screenspot_desktop.*comes from", []) for name in ("screenspot", "screenspot-v2")],
        ("screenspot-pro", "has no annotations/<application>", ["word.json"]),
        ("ui-i2e-bench", r"has no annotations\.jsonl", []),
        ("ui-vision", r"has no element_grounding_<subset>\.json", []),
        ("ui-r1", "", ["ac_test.json"]),
        ("venusbench-gd", r"has no instruction/<task>\.json", []),
    ],
)
def test_another_folder_is_refused(tmp_path: Path, name: str, expected: str, strays: list[str]) -> None:
    """However much it looks like the benchmark's: with what was expected and how to get it."""
    for number, stray in enumerate([None, *strays]):
        root = tmp_path / str(number)
        root.mkdir()
        if stray is not None:
            (root / stray).parent.mkdir(parents=True, exist_ok=True)
            (root / stray).write_text("[]")
        with pytest.raises(UsageError, match=rf"{expected}.*guieval data prepare {name}"):
            load_benchmark(name, root).index()
