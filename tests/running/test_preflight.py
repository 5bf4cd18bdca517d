"""Screenshots that are missing or damaged: counted before a model is asked, and left out where the user says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from guieval.benchmarks._examples.episodes import write_episodes
from PIL import Image

from guieval.data.preflight import Inspection, inspect
from guieval.journal import RunFolder
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark
from tests.command_line import CommandLine
from tests.pictures import orientation

MODEL = "qwen3-vl-8b-instruct"
Words = tuple[str | Path, ...]


@contextmanager
def changed(folder: Path) -> Iterator[list[dict[str, Any]]]:
    """The episodes of a folder, to be changed."""
    lines = [json.loads(line) for line in (folder / "episodes.jsonl").read_text().splitlines()]
    yield lines
    (folder / "episodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    write_episodes(folder, episodes=5, size=(360, 800))
    with changed(folder) as lines:
        for step in (step for line in lines for step in line["steps"]):
            step["screenshot_size"] = [360, 800]  # else the loader itself reads the files
    return folder


@pytest.fixture
def server() -> Iterator[MockServer]:
    with MockServer(MockSettings(model=MODEL, policy="centre")) as running:
        yield running


@pytest.fixture
def words(data: Path, server: MockServer) -> Words:
    return ("run", "--model", MODEL, "--bench", "episodes", "--data", data, "--base-url", server.base_url)


def inspected(data: Path, **more: float) -> Inspection:
    benchmark = load_benchmark("episodes", data)
    refs = benchmark.index()
    return inspect(benchmark, refs, {ref.key: range(ref.length) for ref in refs}, **more)


def shots(data: Path, episode: int) -> list[Path]:
    """The screenshots of an episode's steps."""
    return [data / step.screenshot for step in list(load_benchmark("episodes", data))[episode].steps]


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_a_size_of_an_unturned_file_is_found_before_anything_is_asked(data: Path, kind: str) -> None:
    """The header's size is the record's, and only the metadata says that the picture is another."""
    turned = shots(data, 2)[0]
    Image.effect_noise((360, 800), 90).convert("RGB").save(turned, kind, exif=orientation(6))
    found, third = inspected(data), load_benchmark("episodes", data).index()[2].key
    assert (found.damaged, found.missing, list(found.reasons)) == (1, 0, [third])
    assert "EXIF orientation 6" in str(found) and "360x800, the size of the unturned file" in str(found)


def test_no_screenshots_no_request(tmp_path: Path, data: Path, server: MockServer, words: Words, guieval: CommandLine) -> None:
    total = sum(len(shots(data, number)) for number in range(5))
    gone, cut = shots(data, 1), shots(data, 3)[0]
    for path in gone:
        path.unlink()
    cut.write_bytes(cut.read_bytes()[:-200])
    message = guieval.sentence(*words, "--out", tmp_path / "run")
    assert f"{len(gone) + 1} of {total} chosen steps have no usable screenshot" in message
    assert f"(missing: {len(gone)}, damaged: 1)" in message and str(gone[0]) in message and str(cut) in message
    assert "truncated" in message and "leave out the 2 episodes with --skip-damaged" in message
    assert server.stats()["requests"] == 0 and not (tmp_path / "run").exists()


def test_labels_off_the_screen_are_named_apart_and_a_shared_screenshot_once(
    tmp_path: Path, data: Path, words: Words, guieval: CommandLine
) -> None:
    gone = shots(data, 1)[0]
    gone.unlink()
    with changed(data) as lines:
        lines[0] |= {"frame": "pixels", "steps": [lines[0]["steps"][0] | {"action": {"type": "CLICK", "point": [5400, 800]}}]}
        for line in lines[2:4]:
            line["steps"][0]["screenshot"] = lines[1]["steps"][0]["screenshot"]
    message = guieval.sentence(*words, "--mode", "offline", "--mode", "sop", "--out", tmp_path / "runs")
    assert "chosen steps cannot be loaded: " in message and "outside the 360 x 800" in message
    assert "no usable screenshot (missing: 3): " in message and message.count(str(gone)) == 1
    assert "correct the data (`guieval doctor" in message and "leave out the 4 episodes" in message
    assert not list(tmp_path.glob("runs/*"))


def test_skip_damaged_leaves_their_episodes_out(tmp_path: Path, data: Path, words: Words, guieval: CommandLine) -> None:
    shots(data, 1)[0].unlink()
    shots(data, 3)[0].write_bytes(b"")
    done = guieval(*words, "--skip-damaged", "--out", tmp_path / "run")
    assert done.code == 0 and "2 damaged left out" in done.out, done
    kept = {record.task.episode_id for record in RunFolder(tmp_path / "run").records}
    assert len(kept) == 3 and RunFolder(tmp_path / "run").manifest.to_json()["selection"]["damaged"]["episodes"] == 2
    assert guieval("run", "--resume", tmp_path / "run").code == 0


def test_a_limit_is_filled_with_whole_episodes(tmp_path: Path, data: Path, words: Words, guieval: CommandLine) -> None:
    for number in (0, 1, 2):
        shots(data, number)[-1].unlink()
    done = guieval(*words, "--skip-damaged", "--limit", "2", "--out", tmp_path / "run")
    assert done.code == 0 and len({record.task.episode_id for record in RunFolder(tmp_path / "run").records}) == 2


def test_only_the_chosen_steps_count(tmp_path: Path, data: Path, words: Words, guieval: CommandLine) -> None:
    first, second = (episode.steps[0].episode_id for episode in list(load_benchmark("episodes", data))[:2])
    shots(data, 1)[0].unlink()
    chosen = tmp_path / "chosen.txt"
    chosen.write_text(f"{first}\n")
    done = guieval(*words, "--episodes", chosen, "--out", tmp_path / "run")
    assert done.code == 0, done
    chosen.write_text(f"{first}\n{second}\n")
    guieval.sentence(*words, "--episodes", chosen, "--out", tmp_path / "other")


def test_a_resume_warns_and_goes_on(tmp_path: Path, data: Path, words: Words, guieval: CommandLine) -> None:
    run = tmp_path / "run"
    assert guieval(*words, "--out", run).code == 0
    journal = run / "steps.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:2]))
    left = {json.loads(line)["task"]["screenshot"] for line in lines[2:]}
    (data / min(left)).unlink()
    done = guieval("run", "--resume", run)
    assert done.code == 1 and "warning:" in done.err.splitlines()[0] and "missing: 1)" in done.err
    assert sum(record.finished for record in RunFolder(run).records) == len(lines) - 1
    for path in data.rglob("*.png"):
        path.unlink()
    message = guieval.sentence("run", "--resume", run)
    assert "have no usable screenshot" in message and "--skip-damaged" not in message


def test_a_replay_needs_no_screenshots(tmp_path: Path, data: Path, words: Words, guieval: CommandLine) -> None:
    assert guieval(*words, "--out", tmp_path / "run").code == 0
    for path in data.rglob("*.png"):
        path.unlink()
    again = guieval(*words[:-2], "--replay", tmp_path / "run", "--out", tmp_path / "replayed")
    assert again.code == 0, again


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize("damage", ["none", "cut", "empty", "text", "another size"])
def test_what_the_ends_of_a_file_tell(data: Path, form: str, damage: str) -> None:
    path = shots(data, 2)[0]
    stream = BytesIO()
    size = (360, 801) if damage == "another size" else (360, 800)
    Image.effect_noise(size, 50).convert("RGB").save(stream, form)
    whole = stream.getvalue()
    path.write_bytes({"cut": whole[: len(whole) // 2], "empty": b"", "text": b"404: Not Found"}.get(damage, whole))
    found = inspected(data)
    # the size of a JPEG or WebP image is not among its first bytes: that is reported when the image is read
    seen = damage != "none" and (damage != "another size" or form == "PNG")
    assert found.unusable == seen and found.missing == 0 and len(found.reasons) == seen


def test_it_ends_early_only_while_nothing_is_wrong(data: Path) -> None:
    assert inspected(data, seconds=-1.0).steps == 0
    for path in data.rglob("*.png"):
        path.unlink()
    found = inspected(data, seconds=30.0)
    assert found.steps == found.missing == sum(ref.length for ref in load_benchmark("episodes", data).index())


def test_a_path_out_of_the_folder_is_damage(data: Path) -> None:
    (data.parent / "outside.png").write_bytes(shots(data, 0)[0].read_bytes())
    with changed(data) as lines:
        lines[0]["steps"][0]["screenshot"] = "../outside.png"
    assert inspected(data).unusable > 0
