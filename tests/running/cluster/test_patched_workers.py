"""A worker goes on with an episode that another one patched: it receives the patches with their thoughts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from guieval.journal import Journal, RunFolder
from guieval.registry import load_benchmark
from guieval.running.cluster import Job, Merger, Worker, dealt_first
from guieval.running.cluster.merging import Shard
from guieval.running.config import RunConfig
from guieval.running.resume.identity import manifest_of
from guieval.testing.mock_server import MockServer, MockSettings
from tests.running.cluster.conftest import MODEL, OPTIONS
from tests.running.records import final
from tests.scripted import opened_run


@pytest.mark.parametrize("method", ["thought-free", "on-policy"])
def test_it_goes_on_with_the_patched_history(tmp_path: Path, data: Path, worker: Worker, method: str) -> None:
    settings = MockSettings(model=MODEL, policy="reference", accuracy=0.6, seed=3, served_models=(MODEL,))
    with MockServer(settings, benchmark=load_benchmark("demo", data, **OPTIONS)) as server:
        config = RunConfig(
            model=MODEL,
            bench="demo",
            mode="sop",
            data=str(data),
            bench_options=OPTIONS,
            base_urls=(server.base_url,),
            patch=method,
            patch_budget="unlimited",
        )
        whole, run = opened_run(config, tmp_path / "whole"), opened_run(config, tmp_path / "run")
        whole.execute(resume=False)
        run.begin()
        refs = dealt_first(run.run.selection)
        records = list(RunFolder(tmp_path / "whole").records)
        patched = next(each for each in records if each.patch and each.task.step_index + 1 < each.task.episode_length)
        key, cut = patched.task.episode_key, patched.task.step_index
        position = next(place for place, ref in enumerate(refs) if ref.key == key)
        with Journal(run.directory) as journal:
            for record in records:
                if record.task.episode_key == key and record.task.step_index <= cut:
                    journal.append(record)
        with Journal(run.directory) as journal:
            merger = Merger(run.run, journal)
            assert merger.begun(key) and b'"patch"' in merger.known_lines(key)
            worker.give([place for place in range(len(refs)) if place != position], number=0, last=True)
            job = Job(config.model_dump(mode="json"), manifest_of(run.run), str(run.directory), os.getcwd(), "now")
            assert worker.work(job, [position], merger.known_lines(key)).how == "done"
            merger.add(worker.read(0, 0.0).data, Shard())
    assert final(run.directory) == final(tmp_path / "whole")
