"""docs/labels.md is true: every benchmark is in it, and each label in its tables is put into an example file and loaded."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest
from guieval.benchmarks._examples.androidcontrol import features, fitting_episodes, shard_name
from guieval.benchmarks._examples.androidcontrol_guievalkit import write_folder
from guieval.benchmarks._examples.androidcontrol_ui_s1 import write_test_file
from guieval.benchmarks._examples.tfrecord import example, write_records

from guieval.actions import Action
from guieval.registry import benchmarks, list_benchmarks, load_benchmark
from guieval.steps import StepTaskModel
from tests.conftest import REPOSITORY
from tests.json_values import read_json
from tests.rows import every_row

PAGE = (REPOSITORY / "docs" / "labels.md").read_text(encoding="utf-8")
WITHOUT_LABELS = {"demo", "demo-icons", "demo-screens", "episodes"}
"""Benchmarks whose labels are in unified words already."""


def tables() -> dict[str, list[tuple[str, str]]]:
    """The rows (published, unified) of every section that has a table, by its heading."""
    found: dict[str, list[tuple[str, str]]] = {}
    for section in PAGE.split("\n### ")[1:]:
        heading, _, text = section.partition("\n")
        found[heading] = re.findall(r"^\| `(.+?)` \| `(.+?)` \|", text, re.MULTILINE)
    return found


def words(action: Action) -> str:
    """An action as the page writes it: its type, then its word, direction or place, and a duration other than the usual."""
    fields = action.model_dump(include={"direction", "text", "app", "button", "status", "name"})
    place = "({:g}, {:g})".format(*(round(value, 2) for value in action.point)) if hasattr(action, "point") else ""
    duration = getattr(action, "duration", 1000.0)
    parts = [action.type, *fields.values(), "from" if action.type == "SCROLL" else "", place]
    return " ".join(filter(None, parts)) + ("" if duration == 1000.0 else f" for {duration:g} ms")


@dataclass(frozen=True)
class Format:
    """How the first label of an example is exchanged: the file that holds it, and how the published one gets into it."""

    benchmark: str
    pattern: str
    change: Callable[[Any, Any], None]
    writes: Callable[[Path], None] | None = None

    def write(self, folder: Path) -> None:
        if self.writes:
            self.writes(folder)
        else:
            benchmarks()[self.benchmark].write_example(folder, episodes=1)

    def load(self, folder: Path, label: Any) -> StepTaskModel:
        """The first step when its label is ``label``; the file is as it was afterwards."""
        file = sorted(folder.glob(self.pattern))[0]
        before = file.read_text(encoding="utf-8")
        first, rest = before.split("\n", 1) if file.suffix == ".jsonl" else (before, "")
        value = read_json(first)
        self.change(value, label)
        file.write_text(json.dumps(value) + (f"\n{rest}" if rest else ""), encoding="utf-8")
        try:
            benchmark = load_benchmark(self.benchmark, folder)
            return benchmark.load(benchmark.index()[0]).steps[0]
        finally:
            file.write_text(before, encoding="utf-8")


class TFRecords:
    """AndroidControl's release, which only ``guieval data prepare`` reads."""

    @cached_property
    def record(self) -> dict[str, Any]:
        (played,) = fitting_episodes(0, 1)
        return dict(features(7, played))

    def write(self, folder: Path) -> None:
        (folder / "splits.json").write_text('{"train": [], "validation": [], "test": [7]}', encoding="utf-8")

    def load(self, folder: Path, label: Any) -> StepTaskModel:
        others = [action for action in self.record["actions"] if isinstance(action, bytes)][1:]
        record = {**self.record, "actions": [json.dumps(label).encode(), *others]}
        write_records(folder / shard_name(0, 1), [example(record)])
        release = benchmarks()["androidcontrol"].release(folder)
        return next(release.episodes(release.parts()[0], lambda key: False)).episode.steps[0]


def into(*path: str | int) -> Callable[[Any, Any], None]:
    """Puts the label's fields into what ``path`` leads to."""

    def change(value: Any, label: Any) -> None:
        for key in path:
            value = value[key]
        value.update(label)

    return change


def as_field(field: str, *path: str | int) -> Callable[[Any, Any], None]:
    """Puts the label as ``field`` into what ``path`` leads to."""
    return lambda value, label: into(*path)(value, {field: label})


def as_only(answers: list[Any], label: Any) -> None:
    """Makes the label the only accepted action."""
    answers[:] = [label]


def in_first_state(case: dict[str, Any], label: Any) -> None:
    """Makes the label the only accepted action of the first state; it leads where the example's leads."""
    case["0"] = [{**label, "next": case["0"][0]["next"]}]


ANDROIDCONTROL = "`androidcontrol`, `androidcontrol-low`"
FORMATS: dict[str, Format | TFRecords] = {
    f"{ANDROIDCONTROL}: the authors' TFRecords": TFRecords(),
    f"{ANDROIDCONTROL}: GUIEvalKit's folder": Format(
        "androidcontrol", "test/*/*/*.json", into(0), lambda folder: write_folder(folder, fitting_episodes(0, 1))
    ),
    f"{ANDROIDCONTROL}: UI-S1's files": Format(
        "androidcontrol", "*.jsonl", into("steps", 0), lambda folder: write_test_file(folder, fitting_episodes(0, 1))
    ),
    "`ui-r1`": Format("ui-r1", "ac_test.json", as_field("gt", 0)),
    "`androidcontrol-curated`, `androidcontrol-curated-low`": Format(
        "androidcontrol-curated-low", "android_control_low_point.json", into(0)
    ),
    "`mobi-bench`": Format("mobi-bench", "*/1/0_answers.json", as_only),
    "`ui-i2e-bench`": Format("ui-i2e-bench", "annotations.jsonl", into()),
    "`venusbench-gd`": Format("venusbench-gd", "instruction/element_grounding.json", into(0)),
    "`aitz`, `aitz-low`": Format("aitz", "test/general/*/*.json", into(0)),
    "`aitw`": Format("aitw", "aitw_data_test.json", into("general", 0, 0)),
    "`cagui`": Format("cagui", "CAGUI_agent/domestic/*/*.json", into(0)),
    "`amex`": Format("amex", "instruction_anno/*.json", into("steps", 0)),
    "`gui-odyssey`, `gui-odyssey-low`": Format("gui-odyssey", "annotations/*.json", into("steps", 0)),
    "`hypertrack`, `hypertrack-low`": Format("hypertrack", "test_filtered/*/*.json", as_field("action", "steps", 0)),
    "`agentnetbench`": Format("agentnetbench", "**/*.json", as_field("ground_truth_actions", "steps", 0)),
    "`mind2web`": Format("mind2web", "cross_task_blocks.jsonl", into()),
    "`onekey`": Format("onekey", "*/ref.json", in_first_state),
    "`screenspot`, `screenspot-v2`": Format("screenspot", "screenspot_mobile.json", into(0)),
    "`screenspot-pro`": Format("screenspot-pro", "annotations/*.json", into(0)),
    "`osworld-g`, `osworld-g-refined`": Format("osworld-g", "benchmark/OSWorld-G.json", into(0)),
    "`mmbench-gui-l2`": Format("mmbench-gui-l2", "L2_annotations.json", into(0)),
    "`ui-vision`": Format("ui-vision", "annotations/*/element_grounding_basic.json", into(0)),
    "`cagui-grounding`": Format("cagui-grounding", "CAGUI_grounding/code/cap.jsonl", into()),
}


def test_every_benchmark_has_its_section() -> None:
    named = {name for heading in tables() for name in re.findall("`(.+?)`", heading)}
    assert named == set(list_benchmarks()) - WITHOUT_LABELS


def test_every_section_has_rows_that_are_tested() -> None:
    assert tables().keys() == FORMATS.keys()
    for heading, rows in tables().items():
        section = PAGE.split(f"\n### {heading}\n")[1].split("\n### ")[0]
        assert rows and len(rows) == section.count("\n| `"), f"{heading}: a row is not of the form | `...` | `...` |"


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a format's example, written when it is first asked for."""

    @cache
    def written(heading: str) -> Path:
        folder = tmp_path_factory.mktemp("example")
        FORMATS[heading].write(folder)
        return folder

    return written


@every_row(
    ("heading", "published", "unified"),
    lambda: [(heading, *row) for heading, rows in tables().items() for row in rows],
    ids=lambda value: value.replace("`", "")[:60],
)
def test_the_label_becomes_what_the_page_documents(
    examples: Callable[[str], Path], heading: str, published: str, unified: str
) -> None:
    assert words(FORMATS[heading].load(examples(heading), read_json(published)).action) == unified
