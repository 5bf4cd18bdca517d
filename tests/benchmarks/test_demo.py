from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from guieval.data.screenshots import read_screenshot
from guieval.errors import DataError, UsageError
from guieval.registry import list_benchmarks, load_benchmark
from guieval.steps import Episode

DIGEST = """
import hashlib, pathlib, sys
from guieval.registry import load_benchmark
demo = load_benchmark("demo", sys.argv[1], episodes=3, seed=5)
digest = hashlib.sha256()
for episode in demo:
    digest.update(episode.model_dump_json().encode())
    for step in episode.steps:
        digest.update((pathlib.Path(sys.argv[1]) / step.screenshot).read_bytes())
print(digest.hexdigest())
"""


def test_it_is_found_and_lists_its_episodes_without_drawing(tmp_path: Path) -> None:
    assert "demo" in list_benchmarks()
    refs = load_benchmark("demo", tmp_path).index()
    assert len(refs) == 12
    assert len({ref.key for ref in refs}) == 12
    assert list(tmp_path.iterdir()) == []


def test_records_hold_what_the_contract_asks_for(tmp_path: Path) -> None:
    demo = load_benchmark("demo", tmp_path, episodes=4, seed=2)
    for ref in demo.index():
        episode = demo.load(ref)
        assert (episode.key, len(episode)) == (ref.key, ref.length)
        assert Episode.model_validate_json(episode.model_dump_json()) == episode
        for step in episode.steps:
            assert (step.benchmark, step.dataset, step.setting) == ("demo", "demo", "high")
            assert step.action in demo.action_space
            assert step.groups["app"]
            assert step.low_level_instruction
            image = read_screenshot(tmp_path, step.screenshot, step.screenshot_size)
            assert (image.format, image.size) == ("png", (360, 800))


def test_other_options_never_share_a_file(tmp_path: Path) -> None:
    shots: list[str] = []
    for options in ({}, {"seed": 1}, {"width": 480, "height": 960}):
        demo = load_benchmark("demo", tmp_path, episodes=1, **options)
        shots += [step.screenshot for step in demo.load(demo.index()[0]).steps]
    assert len(shots) == len(set(shots))


def test_more_episodes_begin_with_the_same_ones(tmp_path: Path) -> None:
    few, many = (load_benchmark("demo", tmp_path, episodes=count) for count in (2, 5))
    assert list(many.index())[:2] == list(few.index())
    assert many.load(many.index()[1]) == few.load(few.index()[1])


def test_what_is_drawn_is_kept_and_what_is_missing_is_drawn_again(tmp_path: Path) -> None:
    demo = load_benchmark("demo", tmp_path, episodes=1)
    steps = demo.load(demo.index()[0]).steps
    first, second = (tmp_path / step.screenshot for step in steps[:2])
    pixels = second.read_bytes()
    first.write_bytes(b"kept")
    second.unlink()
    demo.load(demo.index()[0])
    assert first.read_bytes() == b"kept"
    assert second.read_bytes() == pixels
    assert list(tmp_path.rglob("*.tmp")) == []


def test_many_may_draw_the_same_episode_at_once(tmp_path: Path) -> None:
    demo = load_benchmark("demo", tmp_path, episodes=1)
    ref = demo.index()[0]
    loaded: list[Episode] = []
    threads = [threading.Thread(target=lambda: loaded.append(demo.load(ref))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loaded) == 4 and all(episode == loaded[0] for episode in loaded)
    for step in loaded[0].steps:
        read_screenshot(tmp_path, step.screenshot, step.screenshot_size)


def test_records_and_pixels_do_not_depend_on_the_process(tmp_path: Path) -> None:
    digests = set()
    for hash_seed in ("0", "1"):
        folder = tmp_path / hash_seed
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", DIGEST, str(folder)]
        digests.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(digests) == 1
    assert len(digests.pop().strip()) == len(hashlib.sha256().hexdigest())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"episodes": 0}, "option episodes is 0; expected at least 1"),
        ({"episodes": "many"}, "option episodes is 'many'; expected a whole number"),
        ({"episodes": True}, "option episodes is True; expected a whole number"),
        ({"seed": 1.5}, "option seed is 1.5; expected a whole number"),
        ({"width": 100}, "a phone of 100 x 800 pixels cannot be drawn"),
        ({"hight": 800}, "no option 'hight'"),
    ],
)
def test_a_wrong_option_is_one_sentence(tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_benchmark("demo", tmp_path, **options)


def test_a_foreign_reference_is_refused(tmp_path: Path) -> None:
    foreign = load_benchmark("demo", tmp_path, episodes=30, seed=1).index()
    demo = load_benchmark("demo", tmp_path)
    with pytest.raises(DataError, match="no episode demo/s1-0000"):
        demo.load(foreign[0])
    with pytest.raises(DataError, match="no episode"):
        demo.load(foreign[29])


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    demo = load_benchmark("demo", tmp_path / "file", episodes=1)
    with pytest.raises(UsageError, match="cannot be written"):
        demo.load(demo.index()[0])
