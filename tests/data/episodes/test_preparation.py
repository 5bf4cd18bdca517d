"""Preparing a release: complete and equal after kills at any moment, refusing what would mix two preparations."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guieval.data.benchmark import ABCBenchmark, EpisodeRef, PublishedCount
from guieval.data.episodes.prepare import export_episodes, prepare
from guieval.data.episodes.read import PreparedEpisodes
from guieval.errors import DataError, JournalError, ScreenshotError, UsageError
from guieval.registry import benchmarks, load_benchmark
from guieval.steps import Episode
from tests.conftest import REPOSITORY
from tests.rows import every_row
from tests.scripted_release import LENGTH, PARTS, Scripted, episode, png, released, scripted, whole_script

EVERY = [f"{part}-{number}" for part in PARTS for number in range(3)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "release"
    folder.mkdir()
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def in_a_process(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A program that has all of the scripted release at hand."""
    words = [sys.executable, "-c", f"import sys; from pathlib import Path; from tests.scripted_release import *\n{code}"]
    return subprocess.run([*words, *map(str, arguments)], cwd=REPOSITORY, capture_output=True, text=True)


def opened(kind: type[ABCBenchmark], out: Path) -> PreparedEpisodes:
    return PreparedEpisodes(out, kind, kind)


def names(out: Path) -> list[str]:
    return [json.loads(line)["episode_id"] for line in (out / "episodes.jsonl").read_text(encoding="utf-8").splitlines()]


def files(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def without_source(out: Path) -> dict[str, bytes]:
    """Every file's bytes, and of ``prepared.json`` all but where the release was."""
    found = files(out)
    result = json.loads(found.pop("prepared.json"))
    result.pop("source")
    return found | {"prepared.json": json.dumps(result).encode()}


def expected(source: Path, tmp_path: Path) -> dict[str, bytes]:
    prepare(scripted(), source, tmp_path / "expected")
    return without_source(tmp_path / "expected")


def test_a_prepared_folder_gives_the_records_and_the_images_of_the_release(source: Path, tmp_path: Path) -> None:
    kind, out = scripted(), tmp_path / "deep" / "out"
    progress: list[tuple[int, int | None]] = []
    prepared = prepare(kind, source, out, on_progress=lambda *each: progress.append(each))
    assert progress == [(number, 9) for number in range(10)]
    benchmark = opened(kind, out)
    assert [ref.key.episode_id for ref in benchmark.index()] == EVERY
    assert list(benchmark) == [episode(name) for name in EVERY]
    for name in EVERY:
        for number in range(2):
            path = f"screenshots/{name}/{number}.png"
            assert (out / path).read_bytes() == png(sum(path.encode()))
    result = prepared.preparation
    assert (result.episodes, result.steps, result.complete, result.parts) == (9, 27, True, list(PARTS))
    assert result.sha256 == hashlib.sha256((out / "episodes.jsonl").read_bytes()).hexdigest()
    assert {path.name for path in out.iterdir()} == {"episodes.jsonl", "episodes.index.json", "prepared.json", "screenshots"}


@pytest.mark.ci
@every_row("moments", ["0, 29, 4", "1, 29, 5", "29"])
def test_a_kill_at_any_moment_loses_and_doubles_nothing(moments: str, tmp_path: Path) -> None:
    source, out = tmp_path / "release", tmp_path / "out"
    source.mkdir()
    whole = expected(source, tmp_path)
    done = in_a_process(f"print(kills(range({moments}), *map(Path, sys.argv[1:])))", source, out)
    assert int(done.stdout) >= 3, done.stderr
    prepare(scripted(), source, out)
    assert without_source(out) == whole
    assert names(out) == EVERY


def test_a_kill_within_a_write_loses_and_doubles_nothing(source: Path, out: Path, tmp_path: Path) -> None:
    """The file of a stopped preparation, cut at many bytes, is gone on with to the same end."""
    whole = expected(source, tmp_path)
    begun = tmp_path / "begun"
    with pytest.raises(KeyboardInterrupt):
        prepare(scripted(whole_script(stopping_after(11))), source, begun)
    lines = (begun / "episodes.jsonl").read_bytes()
    last = lines.rindex(b"\n", 0, -1) + 1
    for cut in [*range(last - 5, len(lines) - 1, 41), len(lines) - 1]:
        shutil.copytree(begun, out)
        (out / "episodes.jsonl").write_bytes(lines[:cut])
        (out / ".partial").mkdir()
        (out / ".partial" / "7.png").write_bytes(b"half an image")
        prepare(scripted(), source, out)
        assert without_source(out) == whole, cut
        shutil.rmtree(out)


def stopping_after(images: int) -> Callable[[str], bytes]:
    left = [images]

    def image(path: str) -> bytes:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return png(sum(path.encode()))

    return image


def test_going_on_reads_neither_finished_parts_nor_finished_episodes(source: Path, out: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        prepare(scripted(whole_script(stopping_after(11))), source, out)  # in the sixth episode, the last of part two
    kind = scripted()
    prepared = prepare(kind, source, out)
    assert kind.seen == ["two", "two-2", "three", "three-0", "three-1", "three-2"]
    assert prepared.added == 4
    again = scripted()
    assert prepare(again, source, out).added == 0
    assert again.seen == []


def test_a_folder_that_is_not_finished_is_not_opened(source: Path, out: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        prepare(scripted(whole_script(stopping_after(5))), source, out, limit=7)
    command = f"`guieval data prepare scripted --source {source} --out {out} --limit 7`"
    told = re.escape(f"the folder {str(out)!r} was not prepared to its end; go on with {command}")
    with pytest.raises(UsageError, match=f"^{told}$"):
        opened(scripted(), out)
    with pytest.raises(UsageError, match=f"^{told}$"):
        load_benchmark("episodes", out)


def test_a_limit_takes_the_first_episodes_and_can_be_raised(source: Path, out: Path, tmp_path: Path) -> None:
    assert prepare(scripted(), source, out, limit=4).preparation.episodes == 4
    assert names(out) == EVERY[:4]
    assert prepare(scripted(), source, out, limit=4).added == 0
    assert prepare(scripted(), source, out, limit=5).preparation.limit == 5
    with pytest.raises(UsageError, match="holds 5 episodes already, more than --limit 2"):
        prepare(scripted(), source, out, limit=2)
    assert len(list(opened(scripted(), out))) == 5
    prepare(scripted(), source, out)
    assert without_source(out) == expected(source, tmp_path)


def test_a_preparation_that_failed_at_its_first_record_may_be_begun_otherwise(source: Path, out: Path) -> None:
    script = {"one": [released(episode("a"), missing)]}
    with pytest.raises(DataError, match="does not exist; --without-screenshots prepares the annotations alone"):
        prepare(scripted(script), source, out)
    assert prepare(scripted(script), source, out, screenshots=False).preparation.episodes == 1
    assert list(opened(scripted(), out)) == [episode("a")]


def damaged_script() -> dict[str, Any]:
    script = whole_script()
    script["two"].insert(1, DataError("shard two, record 1, field goal: is missing"))
    return script


def test_damage_stops_and_is_named_and_is_left_out_only_on_request(source: Path, out: Path) -> None:
    begun = prepare(scripted(damaged_script()), source, out, limit=4)  # beyond the limit it is not met
    assert (begun.preparation.episodes, begun.preparation.skipped) == (4, [])
    with pytest.raises(DataError, match="shard two, record 1, field goal: is missing"):
        prepare(scripted(damaged_script()), source, out)
    assert names(out) == EVERY[:4]
    prepared = prepare(scripted(damaged_script()), source, out, skip_damaged=True)
    assert prepared.preparation.skipped == ["shard two, record 1, field goal: is missing"]
    assert json.loads((out / "prepared.json").read_text())["skipped"] == prepared.preparation.skipped
    assert names(out) == EVERY


def test_what_was_left_out_is_tried_again(source: Path, out: Path) -> None:
    script = whole_script()
    script["one"][1] = DataError("damaged yet")
    prepare(scripted(script), source, out, skip_damaged=True)
    assert len(names(out)) == 8
    kind = scripted()
    prepared = prepare(kind, source, out)
    assert kind.seen == ["one", "one-1"]
    assert (prepared.preparation.skipped, sorted(names(out))) == ([], sorted(EVERY))


def test_a_line_that_could_not_even_be_listed_is_tried_again(out: Path, tmp_path: Path) -> None:
    """A release that is read in place may be too damaged for an episode to be listed; repaired, it is added."""
    kind, source = benchmarks()["episodes"], tmp_path / "release"
    kind.write_example(source, episodes=3)
    file = source / "episodes.jsonl"
    whole = file.read_text(encoding="utf-8")
    file.write_text(whole.replace('"episode_id": "1"', '"episode": "1"'), encoding="utf-8")
    first = prepare(kind, source, out, skip_damaged=True)
    assert (first.added, len(first.preparation.skipped), first.preparation.parts) == (2, 1, [])
    file.write_text(whole, encoding="utf-8")
    second = prepare(kind, source, out)
    assert (second.added, second.preparation.skipped, sorted(names(out))) == (1, [], ["0", "1", "2"])


def script_with(**changes: Any) -> dict[str, Any]:
    """A release whose second episode's images are as a test says."""
    script = whole_script()
    script["one"][1] = released(episode("one-1"), **changes)
    return script


def missing(path: str) -> bytes:
    raise ScreenshotError(f"the screenshot {path!r} does not exist")


def failing(path: str) -> bytes:
    raise PermissionError(13, "Permission denied", path)


@every_row(
    ("image", "result"),
    [
        (missing, "episode scripted/one-1: the screenshot 'screenshots/one-1/0.png' does not exist; --without-screenshots pre"),
        (failing, "step scripted/one-1#0: the screenshot 'screenshots/one-1/0.png' cannot be read: Permission denied"),
        (lambda path: b"text", "the screenshot 'screenshots/one-1/0.png' is not a readable PNG, JPEG or WebP image"),
        (lambda path: png(0)[:-20], "the screenshot 'screenshots/one-1/0.png' is "),
        (lambda path: png(0, (9, 16)), "is 9x16 pixels, but its record says 8x16"),
    ],
)
def test_a_bad_image_is_named(image: Callable[[str], bytes], result: str, source: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape(result)):
        prepare(scripted(script_with(image=image)), source, tmp_path / "out")
    assert names(tmp_path / "out") == ["one-0"]
    prepared = prepare(scripted(script_with(image=image)), source, tmp_path / "out", skip_damaged=True)
    assert [result in each for each in prepared.preparation.skipped] == [True]
    assert names(tmp_path / "out") == [name for name in EVERY if name != "one-1"]
    alone = prepare(scripted(script_with(image=image)), source, tmp_path / "alone", screenshots=False)
    assert (alone.preparation.episodes, alone.preparation.screenshots) == (9, False)
    assert not (tmp_path / "alone" / "screenshots").exists()


def test_an_image_that_several_episodes_share_is_written_once(source: Path, out: Path) -> None:
    script = {"one": [released(episode(name, screenshot="shared.png")) for name in ("a", "b")]}
    written = []
    for limit in (1, None):
        prepare(scripted(script), source, out, limit=limit)
        written.append((out / "shared.png").stat())
    assert len({(each.st_ino, each.st_mtime_ns) for each in written}) == 1


def with_image_at(path: str) -> dict[str, Any]:
    return whole_script() | {"one": [released(episode("one-1", screenshot=path))]}


IMAGES: tuple[Callable[[str], bytes], ...] = (lambda path: png(1), lambda path: png(2))
SHARED = [released(episode(str(n), screenshot="shared.png"), image) for n, image in enumerate(IMAGES, 1)]
OUTSIDE = ["../out.png", "/etc/out.png", "a/../../out.png", "prepared.json", "episodes.jsonl", ""]


@every_row(
    ("script", "message"),
    [
        *[(with_image_at(path), r"leads out of its folder|is empty|is the name of a file of the folder") for path in OUTSIDE],
        ({"one": SHARED}, r"step scripted/2#0: the release has two different images for 'shared\.png'"),
        (whole_script() | {"four": [released(episode("one-0"))]}, "the release has episode scripted/one-0 twice"),
        ({"one": []}, "the release has no episode that can be prepared"),
    ],
)
def test_a_release_that_contradicts_itself_is_an_error(script: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "release").mkdir()
    with pytest.raises(DataError, match=message):
        prepare(scripted(script), tmp_path / "release", tmp_path / "out")


def test_folders_that_cannot_be_used_are_refused(source: Path, out: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    for given, to, result in (
        (source, source / "out", "one lies in the other"),
        (source, source.parent, "one lies in the other"),
        (source, tmp_path / "x" / ".." / "release", "--source and --out are the same folder"),
        (source, tmp_path / "file", "is a file; give a folder to be made"),
        (source, tmp_path / "full", "is not empty and no preparation was begun in it"),
        (tmp_path / "none", out, "does not exist; 'scripted' is prepared from a test's script"),
    ):
        with pytest.raises(UsageError, match=re.escape(result)):
            prepare(scripted(), given, to)
    assert not out.exists()
    prepare(scripted(), source, out)
    with pytest.raises(UsageError, match=r"is prepared already; run it with --data"):
        prepare(scripted(), out, tmp_path / "twice")


def test_a_release_in_a_folder_whose_name_is_no_text_is_prepared(tmp_path: Path) -> None:
    kind, source, out = benchmarks()["episodes"], tmp_path / os.fsdecode(b"no\xfftext"), tmp_path / os.fsdecode(b"out\xff")
    kind.write_example(source)
    assert prepare(kind, source, out).added == 2
    assert prepare(kind, source, out).added == 0
    assert list(load_benchmark("episodes", out)) == list(load_benchmark("episodes", source))


def test_another_preparation_is_not_mixed_in(source: Path, out: Path, tmp_path: Path) -> None:
    prepare(scripted(), source, out, limit=2)
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(UsageError, match=f"holds 'scripted' prepared from {str(source.resolve())!r}; take another --out"):
        prepare(scripted(), other, out)
    with pytest.raises(UsageError, match="holds 'scripted' prepared from"):
        prepare(type("Renamed", (scripted(),), {"name": "renamed"}), source, out)
    with pytest.raises(UsageError, match=re.escape("was begun with the options {}, not {'splits': 'all'}")):
        prepare(scripted(), source, out, options={"splits": "all"})
    with pytest.raises(UsageError, match="was begun with screenshots; go on so, or take another --out"):
        prepare(scripted(), source, out, screenshots=False)
    with pytest.raises(UsageError, match="has lost its part 'one'"):
        prepare(scripted(), source, out, limit=4)
        prepare(scripted({"two": whole_script()["two"]}), source, out)
    source.rename(tmp_path / "moved")  # the same release at another place is gone on with
    assert prepare(scripted(), tmp_path / "moved", out).preparation.episodes == 9


def test_two_preparations_at_once_are_refused(source: Path, out: Path) -> None:
    def image(path: str) -> bytes:
        prepare(scripted(), source, out)
        raise AssertionError("the second one was let in")

    with pytest.raises(UsageError, match="is being prepared by another process"):
        prepare(scripted(whole_script(image)), source, out)


def test_a_full_disk_is_reported_and_loses_nothing(source: Path, out: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands in for the disk: the line that would pass it cannot be written."""
    code = (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2500, resource.RLIM_INFINITY))\n"
        "prepare(scripted(), Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    done = in_a_process(code, source, out)
    told = f"{str(out)!r}: File too large (the disk is full); what is there already is kept, and the same command continues"
    assert f"JournalError: cannot write to {told}" in done.stderr
    assert 0 < len(names(out)) < 9
    prepare(scripted(), source, out)
    assert without_source(out) == expected(source, tmp_path)


def test_a_release_that_has_grown_is_gone_on_with(source: Path, out: Path) -> None:
    """Both by a new part, and within a part that had been read to its end."""
    whole = whole_script()
    first = PARTS[0]
    begun = prepare(scripted({first: whole[first][:1]}), source, out)
    assert (begun.preparation.complete, begun.added, begun.preparation.expected) == (True, 1, 1)
    assert prepare(scripted({first: whole[first]}), source, out).added == len(whole[first]) - 1
    assert prepare(scripted(whole), source, out).preparation.episodes == sum(map(len, whole.values()))
    assert prepare(scripted(whole), source, out).added == 0


def test_what_was_prepared_is_compared_with_the_published(source: Path, out: Path) -> None:
    part = PublishedCount("o", 9, "a paper", 3, groups={"app": "o"}, types={"CLICK": 6, "STOP": 3})
    prepared = prepare(scripted(published=(part, PublishedCount("train", 50, "a paper", split="train"))), source, out)
    assert [(each.published.name, each.verdict) for each in prepared.comparisons] == [("o", "agrees"), ("train", "absent")]


def test_memory_does_not_grow_with_the_release(source: Path, tmp_path: Path) -> None:
    code = (
        "import resource\n"
        "big = lambda path: png(len(path), (500, 500)) + bytes(4_000_000)\n"
        "class Big(Script):\n"
        "    def episodes(self, part, done):\n"
        "        for number in range(int(sys.argv[3])):\n"
        "            yield released(episode(str(number), screenshot_size=(500, 500)), big)\n"
        "kind = scripted(); kind.release = classmethod(lambda cls, source: Big({'one': []}, []))\n"
        "prepare(kind, Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    peaks = [int(in_a_process(code, source, tmp_path / f"out{number}", number).stdout) for number in (3, 30)]
    assert peaks[1] - peaks[0] < 16 * 1024  # KiB; the 27 episodes more are 216 MB of images


# The stored index, and what happens when it or the file is not as it was left.


def prepared_from(source: Path, out: Path) -> PreparedEpisodes:
    prepare(scripted(), source, out)
    return opened(scripted(), out)


def test_the_stored_index_is_what_is_opened_and_other_lines_of_the_same_length_are_noticed(source: Path, out: Path) -> None:
    benchmark = prepared_from(source, out)
    stored, file = list(benchmark.index()), out / "episodes.jsonl"
    lines = file.read_bytes()
    file.write_bytes(lines.replace(b"one-1", b"one-9"))
    benchmark.load(stored[0])
    with pytest.raises(DataError, match="is not episode scripted/one-1 any more"):
        benchmark.load(stored[1])
    file.write_bytes(b"#" * len(lines))  # of the right length: opening does not read it
    assert list(opened(scripted(), out).index()) == stored
    with pytest.raises(DataError, match="line 1: is not JSON"):
        opened(scripted(), out).load(stored[0])


TOO_LONG = b'{"format":"guieval-episodes-index-1","subsets":[],"splits":[],"episode_ids":[],"subset":[],"split":[],'
TOO_LONG += b'"lengths":[%d],"sizes":[%%d]}' % 2**80


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"format": "x"}', TOO_LONG, None])
def test_an_index_that_is_lost_or_damaged_is_rebuilt(damage: bytes | None, source: Path, out: Path) -> None:
    stored = list(prepared_from(source, out).index())
    index = out / "episodes.index.json"
    if damage is None:
        index.unlink()
    else:
        index.write_bytes(damage.replace(b"%d", str((out / "episodes.jsonl").stat().st_size).encode()))
    benchmark = opened(scripted(), out)
    assert list(benchmark.index()) == stored
    assert list(benchmark) == [episode(name) for name in EVERY]


def test_a_corrected_label_is_read_and_a_cut_file_refused(source: Path, out: Path) -> None:
    prepared_from(source, out)
    file = out / "episodes.jsonl"
    lines = file.read_text()
    file.write_text(lines.replace("do one-0", "do one-0 with care"))
    assert next(iter(opened(scripted(), out))).steps[0].instruction == "do one-0 with care"
    file.write_text("".join(lines.splitlines(keepends=True)[:-1]))
    with pytest.raises(DataError, match=r"holds 8 episodes, but prepared\.json says 9: the file was cut or changed"):
        opened(scripted(), out).index()


# The real thing: equal to what the native loaders give.


def check_prepared(name: str, root: Path, out: Path, *, images: bool = True) -> int:
    """Prepare a release and compare it with what its own loader gives; the number of steps."""
    native = load_benchmark(name, root)
    prepare(benchmarks()[name], root, out, screenshots=images)
    served = load_benchmark(name, out)
    one, other = ([(ref.key, ref.length, ref.split) for ref in benchmark.index()] for benchmark in (native, served))
    assert one == other
    episodes = list(native)
    assert list(served) == episodes
    assert (served.name, served.title, served.protocol, served.setting) == (name, native.title, native.protocol, native.setting)
    assert (served.dataset, served.action_space, served.published) == (native.dataset, native.action_space, native.published)
    for each in {step.screenshot for whole in episodes for step in whole.steps} if images else ():
        assert (out / each).read_bytes() == (native.root / each).read_bytes()
    return sum(map(len, episodes))


@pytest.mark.ci
@every_row("name", ["androidcontrol", "androidcontrol-low"])
def test_a_large_real_release_is_prepared_without_loss(name: str, shared_data: Path, tmp_path: Path) -> None:
    assert check_prepared(name, shared_data / "ui_s1", tmp_path / "out", images=False) == 8444


def test_every_example_of_a_release_is_prepared_without_loss(out: Path, tmp_path: Path) -> None:
    """Whatever a loader reads in place, of every benchmark that can write an example of its format."""
    tried = []
    for name, kind in benchmarks().items():
        if not kind.needs_data:
            continue
        try:
            kind.write_example(tmp_path / name, episodes=1)
        except NotImplementedError:
            continue
        assert check_prepared(name, tmp_path / name, out / name)
        tried.append(name)
    assert "episodes" in tried


def test_one_folder_serves_both_settings_of_a_data_set_and_no_other_data_set(shared_data: Path, tmp_path: Path) -> None:
    prepare(benchmarks()["androidcontrol"], shared_data / "ui_s1", tmp_path / "high", screenshots=False, limit=20)
    low = load_benchmark("androidcontrol-low", tmp_path / "high")
    native = load_benchmark("androidcontrol-low", shared_data / "ui_s1")
    assert list(low) == [native.load(ref) for ref in native.index()[:20]]
    assert {step.setting for each in low for step in each.steps} == {"low"}
    anonymous = load_benchmark("episodes", tmp_path / "high")
    assert (anonymous.dataset, anonymous.setting, anonymous.name) == ("androidcontrol", "high", "episodes")
    with pytest.raises(UsageError) as caught:
        load_benchmark("screenspot", tmp_path / "high")
    assert str(caught.value) == (
        f"the folder {str(tmp_path / 'high')!r} holds 'androidcontrol', prepared as 'androidcontrol', and not ScreenSpot; run "
        "it with --bench androidcontrol, or convert a release by `guieval data prepare screenspot --source RELEASE --out DIR`"
    )
    with pytest.raises(UsageError, match=r"option 'screen_size' of 'androidcontrol' says how a release is read"):
        load_benchmark("androidcontrol", tmp_path / "high", screen_size="1080x2400")


def test_the_same_screens_with_other_instructions_are_not_served_as_each_other(out: Path, tmp_path: Path) -> None:
    """OSWorld-G's refined instructions are a benchmark of the same data set and made from it, but ask other questions."""
    kind = benchmarks()["osworld-g"]
    kind.write_example(tmp_path / "release")
    assert issubclass(refined := benchmarks()["osworld-g-refined"], kind) and refined.dataset == kind.dataset
    prepare(kind, tmp_path / "release", out)
    load_benchmark("osworld-g", out)
    told = "prepared as 'osworld-g', and not OSWorld-G \\(refined\\); run it with --bench osworld-g,"
    with pytest.raises(UsageError, match=told):
        load_benchmark("osworld-g-refined", out)


def test_low_level_instructions_that_are_not_there_are_reported(shared_data: Path, out: Path) -> None:
    prepare(benchmarks()["androidcontrol"], shared_data / "ui_s1", out, screenshots=False, limit=2)
    file = out / "episodes.jsonl"
    file.write_text(re.sub(r'"low_level_instruction":"[^"]*",', "", file.read_text(), count=1))
    assert len(list(load_benchmark("androidcontrol", out))) == 2
    with pytest.raises(DataError, match=r"line 1, field steps\.0\.low_level_instruction: is missing, but the setting 'low'"):
        list(load_benchmark("androidcontrol-low", out))


def test_a_preparation_of_another_version_is_not_read(source: Path, out: Path) -> None:
    prepare(scripted(), source, out)
    file = out / "prepared.json"
    text = file.read_text()
    for changed, result in (
        (text.replace("guieval-episodes-1", "guieval-episodes-9"), "is of format 'guieval-episodes-9'; this version reads"),
        (text[:40], "prepared.json': is not JSON"),
        (text.replace('"benchmark"', '"bench"'), "prepared.json', field benchmark: is missing"),
    ):
        file.write_text(changed)
        with pytest.raises(UsageError, match=re.escape(result)):
            load_benchmark("screenspot", out)


# Export.


class Listed(Scripted):
    """A benchmark that loads a few episodes, the second of them damaged."""

    def index(self) -> list[EpisodeRef]:
        return [EpisodeRef(episode(name).key, LENGTH, name) for name in ("a", "b", "c")]

    def load(self, ref: EpisodeRef) -> Episode:
        if ref.locator == "b":
            raise DataError("b is damaged")
        return episode(ref.locator)


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz"])
def test_an_export_is_read_by_the_episodes_benchmark(name: str, tmp_path: Path) -> None:
    benchmark = Listed(tmp_path)
    with pytest.raises(DataError, match="b is damaged"):
        export_episodes(benchmark, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    benchmark = benchmark.skipping_damaged()
    assert export_episodes(benchmark, tmp_path / name) == (2, 2 * LENGTH)
    found = list(load_benchmark("episodes", tmp_path, file=name))
    assert found == [episode(each, benchmark="episodes") for each in ("a", "c")]
    assert export_episodes(benchmark, tmp_path / f"one-{name}", limit=1) == (1, LENGTH)
    again = tmp_path / f"again-{name}"
    export_episodes(benchmark, again)
    assert again.read_bytes() == (tmp_path / name).read_bytes()
    with pytest.raises(UsageError, match="exists already"):
        export_episodes(benchmark, again)
    (tmp_path / "a-file").write_text("")
    with pytest.raises(JournalError, match=r"cannot write to '.*a-file': File exists$"):
        export_episodes(benchmark, tmp_path / "a-file" / name)
    with pytest.raises(UsageError, match=r"expected a file NAME\.jsonl"):
        export_episodes(benchmark, tmp_path / "out.csv")


def test_what_a_killed_export_left_is_swept_by_the_next_one(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    left = tmp_path / f".out.jsonl.{ended.pid}.partial"
    alive = f".out.jsonl.{os.getppid()}.partial"
    others = [tmp_path / name for name in (alive, f".other.jsonl.{ended.pid}.partial", ".out.jsonl.x.partial")]
    for file in (left, *others):
        file.write_bytes(b"half")
    export_episodes(Listed(tmp_path).skipping_damaged(), tmp_path / "out.jsonl")
    assert sorted(tmp_path.iterdir()) == sorted([*others, tmp_path / "out.jsonl"])
