"""Annotation files of every benchmark: steps that can be stored, or one sentence about what is wrong."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from random import Random
from typing import ClassVar, NamedTuple

from guieval.conformance.damage import annotation_files
from guieval.data.benchmark import ABCBenchmark
from guieval.errors import DataError, UsageError
from guieval.registry import benchmarks
from guieval.steps import Episode

from . import mutations
from .engine import Target, Wrong, sentence

REAL = {"aitz": "aitz_example", "ui-r1": "ui_r1", "androidcontrol-low": "ui_s1", "cagui": "cagui_grounding"}
"""Folders of real annotations, of whose files the first rows are taken."""
ROWS = 10


class _Data(NamedTuple):
    kind: type[ABCBenchmark]
    root: Path
    files: list[Path]


class Annotations(Target):
    name: ClassVar[str] = "annotations"

    def __init__(self, folder: Path, real: Path | None) -> None:
        self._data: list[_Data] = []
        for name, kind in sorted(benchmarks().items()):
            if not kind.needs_data:
                continue
            (folder / name).mkdir()
            kind.write_example(folder / name)
            self._add(kind, folder / name)
            if real is not None and name in REAL and (real / REAL[name]).is_dir():
                self._add(kind, _shortened(Path(shutil.copytree(real / REAL[name], folder / f"real-{name}"))))

    def _add(self, kind: type[ABCBenchmark], root: Path) -> None:
        files = [file for file in annotation_files(root) if file.name != "README.md" and file.stat().st_size < 500_000]
        if files:
            self._data.append(_Data(kind, root, files))

    def check(self, dice: Random) -> None:
        data = dice.choice(self._data)
        file = dice.choice(data.files)
        before = file.read_bytes()
        file.write_bytes(mutations.file(dice, before, file.name))
        try:
            _read(data, skip_damaged=dice.random() < 0.3)
        finally:
            file.write_bytes(before)


def _shortened(root: Path) -> Path:
    """The folder with no more than the first rows of each file, so that it can be read a thousand times."""
    for file in annotation_files(root):
        packed = file.suffix == ".gz"
        content = gzip.decompress(file.read_bytes()) if packed else file.read_bytes()
        if ".jsonl" in file.name:
            content = b"".join(content.splitlines(keepends=True)[:ROWS])
        elif ".json" in file.name and isinstance(rows := json.loads(content), list):
            content = json.dumps(rows[:ROWS]).encode()
        file.write_bytes(gzip.compress(content, 1) if packed else content)
    return root


def _read(data: _Data, *, skip_damaged: bool) -> None:
    try:
        benchmark = data.kind(data.root)
        benchmark = benchmark.skipping_damaged() if skip_damaged else benchmark
        episodes = list(benchmark)
    except (DataError, UsageError) as error:
        sentence(error)
        return
    for left_out in benchmark.skipped:
        sentence(left_out)
    for episode in episodes:
        text = episode.model_dump_json()  # what is no JSON in a loader's extras, such as NaN, is null from here on
        if Episode.model_validate_json(text).model_dump_json() != text:
            raise Wrong(f"{data.kind.name}: the episode {episode.key} is another one after JSON")
