"""Scaffolds: what is shipped is whole and sourced, a wrong one is refused, and a run records and shows which it had."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Click, Point
from guieval.data.screenshots import read_screenshot
from guieval.data.shipped import config_folder
from guieval.errors import UsageError
from guieval.history import reference_entry
from guieval.journal import MANIFEST, RunFolder
from guieval.models.scaffold import Scaffold
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import list_adapters, load_model, load_scaffold, model_configs
from guieval.running.resolve import resolve
from guieval.settings import RunConfig
from tests.command_line import CommandLine
from tests.rows import every_row
from tests.scripted import make_episode


def test_shipped_scaffolds_have_a_source_or_are_defaults_and_fit_their_families() -> None:
    first = {config.adapter: name for name, config in reversed(model_configs().items())}
    for file in (config_folder() / "scaffolds").iterdir():
        scaffold = load_scaffold(file.stem)
        assert scaffold.name == file.stem and scaffold.name.endswith("-official" if scaffold.source else "-default")
        assert scaffold.families and {*scaffold.families} <= {*list_adapters()}, file.name
        for family in scaffold.families:  # which takes its options, or raises
            load_model(first[family], scaffold=scaffold.name)


def test_two_scaffolds_differ_by_what_holds_in_them_and_not_by_their_names(guieval: CommandLine) -> None:
    one, other = load_scaffold("ui-tars-1.5-default"), load_scaffold("ui-tars-1.5-official")
    differing = json.loads(guieval("dev", "scaffolds", one.name, other.name, "--json").out)
    (row,) = differing["differences"]  # images are 5 in the family
    assert row == {"setting": "sampling.repetition_penalty", one.name: 1.0, other.name: None}
    assert one.model_copy(update={"name": "mine", "notes": "x"}).sha256 == one.sha256 != other.sha256


def test_every_family_that_keeps_screenshots_drops_several_at_once_if_its_scaffold_says_so(tmp_path: Path) -> None:
    assert [n - Scaffold(images=20, fold=10).unshown(n, 20) for n in (19, 20, 21, 30, 31)] == [19, 20, 11, 20, 11]
    file = tmp_path / "own.yaml"
    file.write_text(json.dumps({"name": "own", "images": 3, "fold": 3}))
    steps, found = make_episode("a", [Click(point=Point(9, 9))] * 7).steps, {}
    for config in {each.adapter: each for each in model_configs().values()}.values():
        with suppress(UsageError):  # it has no such option
            model = load_model(config.name, scaffold=str(file))
            past = [reference_entry(step) for step in steps]
            found[config.adapter] = [len(model.prepare_input(step, past[:n]).images) for n, step in enumerate(steps)]
    several = {name: counts for name, counts in found.items() if max(counts) > 1}
    assert len(several) > 8 and set(map(tuple, several.values())) == {(1, 2, 3, 1, 2, 3, 1)}, several


@every_row(
    ("content", "settings", "message"),
    [
        (
            None,
            {"scaffold": "ui-tars-1.5-oficial"},
            "unknown scaffold 'ui-tars-1.5-oficial'.*did you mean 'ui-tars-1.5-official'",
        ),
        (
            None,
            {"scaffold": "fara-default"},
            "for fara, and model 'ui-tars-1.5-7b' is of ui_tars_1_5, which has ui-tars-1.5-def",
        ),
        ({"budgets": {}}, {}, "field budgets: is not known"),
        ({"name": "x-official"}, {}, "only with the repository and commit"),
        ({"encoding": {"format": "png", "quality": 3}}, {}, "field encoding: a quality is of format jpeg"),
        ({"history": "turns"}, {}, "has no option 'history'"),
        ({"sampling": {"temprature": 1}}, {}, "field sampling.temprature"),
        ({"budget": {"per_complexity": 10}}, {"mode": "online"}, "does not fit environment 'demo': its task .* has none"),
        ({"tasks": {"without": ["x"]}}, {"mode": "online"}, "lists 'x', which is no task of 'demo'"),
        ({"images": 2, "fold": 3}, {}, "fold: 3 is more than images, 2"),
        ({"wait": {"after_reset": 2}}, {"mode": "online", "bench": "mobileworld"}, "waits 2 s after reset, which environment"),
        ({"thinking": True}, {"model": "gta1-7b-2507"}, "has no thinking switch; the scaffold's thinking must be null"),
        ({"sampling": {"top_p": 1}}, {"model": "ocr-baseline"}, "sets sampling, and model 'ocr-baseline' answers by itself"),
    ],
)
def test_what_cannot_be_honoured_is_refused(
    content: dict[str, Any] | None, settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "own.yaml"
    if content is not None:
        file.write_text(json.dumps({"name": "own", **content}))
    given = {
        "model": "ui-tars-1.5-7b",
        "bench": "demo",
        "base_urls": ["http://127.0.0.1:9/v1"],
        "scaffold": str(file),
        **settings,
    }
    with pytest.raises(UsageError, match=message):
        resolve(RunConfig(**given))


def test_screenshots_are_sent_in_the_encoding_of_the_scaffold(tmp_path: Path) -> None:
    from PIL import Image

    Image.effect_noise((90, 60), 60).convert("RGB").save(tmp_path / "a.jpg", quality=90)
    sent = {quality: read_screenshot(tmp_path, "a.jpg", (90, 60), jpeg=quality) for quality in (30, 75)}
    assert [each.format for each in sent.values()] == ["jpeg", "jpeg"] and len(sent[30].data) < len(sent[75].data)
    assert read_screenshot(tmp_path, "a.jpg", (90, 60), only_png=True).data.startswith(b"\x89PNG")
    assert read_screenshot(tmp_path, "a.jpg", (90, 60)).data == (tmp_path / "a.jpg").read_bytes()


def test_a_run_records_and_shows_its_scaffold_and_resumes_in_no_other(tmp_path: Path, guieval: CommandLine) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(json.dumps({"name": "own", "families": ["ui_tars"], "prompt": "mobile", "encoding": {"format": "jpeg"}}))
    with MockServer(MockSettings(model="ui-tars-7b", keep=99)) as server:
        words = f"run --model ui-tars-7b --bench demo --limit 1 --base-url {server.base_url} --quiet".split()
        changed: list[str | Path] = ["--scaffold", own, "--set", "sampling.top_p=0.5"]
        for name, more, line in (("plain", [], "ui-tars-default"), ("own", changed, "own (changed: sampling.top_p)")):
            assert f"scaffold: {line}\n" in guieval(*words, *more, "--out", tmp_path / name).out
            assert f"scaffold: {line}\n" in guieval("score", tmp_path / name).out
            assert RunFolder(tmp_path / name).manifest.scaffold_line == line
        first, last = server.requests[0].body, server.requests[-1].body
        assert b"image/jpeg" in last and b"image/png" in first and b"max_tokens" in first and b"max_tokens" not in last
        compared = guieval("compare", tmp_path / "plain", tmp_path / "own").out
        assert "scaffold: ui-tars-default (A), own (changed: sampling.top_p) (B)" in compared
        resume: list[str | Path] = ["run", "--resume", tmp_path / "plain", "--base-url", server.base_url, "--quiet"]
        refused = guieval.sentence(*resume, "--scaffold", own)
        assert "scaffold (was 'ui-tars-default', now 'own')" in refused and "scaffold.encoding.format" in refused
        manifest = json.loads((tmp_path / "plain" / MANIFEST).read_text())
        scaffold = manifest.pop("scaffold")  # as versions before wrote it
        manifest["model"] |= {name: scaffold[name] for name in ("sampling", "thinking")}
        (tmp_path / "plain" / MANIFEST).write_text(json.dumps(manifest))
        assert "scaffold: not recorded\n" in guieval(*resume).out


def test_another_package_adds_a_scaffold(monkeypatch: pytest.MonkeyPatch) -> None:
    from guieval import registry

    class Entry:
        name, value = "theirs-default", "package:THEIRS"

        def load(self) -> Any:
            return Scaffold(name="theirs-default")

    monkeypatch.setattr(registry, "entry_points", lambda group: [Entry()] if group == "guieval.scaffolds" else [])
    monkeypatch.setattr(registry, "scaffolds", registry.scaffolds.__wrapped__)
    assert registry.load_scaffold("theirs-default") == Scaffold(name="theirs-default")
