"""The table of downloads names benchmarks that exist and the repositories that their loaders name."""

from __future__ import annotations

from pathlib import Path

from guieval.data.hub.table import read_downloads
from guieval.registry import benchmarks
from tests.command_line import CommandLine

TABLE = read_downloads(Path(__file__).parents[3] / "benchmarks" / "downloads.yaml")


def test_every_repository_is_the_one_that_the_loader_names() -> None:
    for name, download in TABLE.items():
        assert f"huggingface.co/datasets/{download.repository}" in benchmarks()[name].source, name


def test_every_loader_of_a_data_set_on_the_hub_is_in_the_table() -> None:
    on_hub = {name for name, kind in benchmarks().items() if kind.source.startswith("huggingface.co/datasets/")}
    assert on_hub <= TABLE.keys()


def test_what_can_be_downloaded_says_so(guieval: CommandLine) -> None:
    assert "download: guieval download screenspot-v2 --out DIR (about 1.33 GB)" in guieval("benchmarks", "screenspot-v2").out
    assert "guieval download" not in guieval("benchmarks", "osworld-g").out
