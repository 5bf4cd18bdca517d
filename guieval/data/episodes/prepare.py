"""Turning an authors' release into a prepared folder, and comparing its contents with what is published.

The folder is right after a kill at any moment: an episode's line is added by one system call after its screenshots are in
place, a file takes its name only when it is whole, and what a torn line left is cut off before anything is added. Going on
reads the finished episodes' names from the file itself; only which parts of the release are read to their end is noted.
"""

from __future__ import annotations

import errno
import fcntl
import gzip
import hashlib
import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pydantic_core import from_json

from guieval.data.benchmark import ABCBenchmark, Release, ReleasedEpisode
from guieval.data.doctor.counts import CountComparison, Counts, compare
from guieval.data.episodes.format import EPISODES, FORMAT, INDEX, PREPARED, Preparation, is_prepared, read_preparation
from guieval.data.episodes.index import EpisodeIndex, line_head
from guieval.data.episodes.read import EpisodesFolder
from guieval.data.episodes.write import episode_line
from guieval.data.files import becoming, open_descriptor, open_file, read_bytes
from guieval.data.names import path_inside
from guieval.data.screenshots import probe
from guieval.errors import DataError, JournalError, ScreenshotError, UsageError, whole_text
from guieval.steps import EpisodeKey, StepTaskModel

PARTIAL = ".partial"
"""Folder below the prepared one where files lie until they are whole."""
OWN_NAMES = frozenset({EPISODES, INDEX, PREPARED, PARTIAL})
_FIRST_NAMES = frozenset({EPISODES, PARTIAL})  # what exists before ``prepared.json`` does


@dataclass(frozen=True)
class Prepared:
    """The result of a preparation: the folder, its content, and how that compares with what is published."""

    folder: Path
    preparation: Preparation
    comparisons: tuple[CountComparison, ...]
    added: int


def prepare(
    kind: type[ABCBenchmark],
    source: Path,
    out: Path,
    *,
    options: Mapping[str, Any] | None = None,
    limit: int | None = None,
    skip_damaged: bool = False,
    screenshots: bool = True,
    on_progress: Callable[[int, int | None], None] = lambda episodes, expected: None,
) -> Prepared:
    """Convert the release in ``source`` into the folder ``out``, or go on with it where it was stopped.

    ``limit`` takes the first episodes of the release. ``on_progress`` is called with the number of episodes that are prepared,
    and how many there will be (``None`` if only reading the release shows it). A damaged record raises :class:`DataError`,
    or is listed in ``prepared.json`` if ``skip_damaged`` is set. Without ``screenshots`` only annotations are written.
    Raises :class:`UsageError` for folders that cannot be used, :class:`JournalError` if nothing more can be written.
    """
    _check_folders(kind, source, out)
    release = kind.release(source, **(options or {}))
    release.skip_damaged, release.skipped = skip_damaged, []
    requested = Preparation(
        format=FORMAT,
        benchmark=kind.name,
        dataset=kind.dataset or kind.name,
        setting=kind.setting,
        source=whole_text(str(source.resolve())),
        options=dict(options or {}),
        limit=limit,
        screenshots=screenshots,
    )
    parts = release.parts()
    state = requested
    grown = False
    if is_prepared(out) and _has_lines(out):  # a preparation that failed at its first record may start with other options
        state = _same(read_preparation(out), requested, out)
        grown = state.complete and limit is None and state.expected not in (None, release.episodes_expected)
        finished = state.complete and not state.skipped and state.limit in (None, limit)
        if finished and not grown and (limit is not None or set(parts) <= set(state.parts)):
            return _finished(kind, out, state, added=0)
        state.limit = limit
    if lost := [part for part in state.parts if part not in parts]:
        raise UsageError(f"the release in {str(source)!r} has lost its part {lost[0]!r}, which {str(out)!r} was begun with")
    kept = "; what is there already is kept, and the same command continues from there"
    with _writing(out, kept), _Writer(out, state) as writer:
        _check_limit(len(writer.done), limit, out)
        _transfer(release, [part for part in parts if grown or part not in state.parts], writer, on_progress)
        state.skipped = [str(error) for error in release.skipped]
        state.expected = release.episodes_expected if limit is None else None
        writer.finish()
    return _finished(kind, out, state, added=writer.added)


def _check_folders(kind: type[ABCBenchmark], source: Path, out: Path) -> None:
    if not kind.needs_data:
        raise UsageError(f"benchmark {kind.name!r} makes its own data: there is nothing to prepare")
    if not source.is_dir():
        what = "is a file, not a folder" if source.is_file() else "does not exist"
        raise UsageError(f"the release folder {str(source)!r} {what}; {kind.name!r} is prepared from {kind.source}")
    if is_prepared(source) and not issubclass(kind, EpisodesFolder):
        raise UsageError(f"the folder {str(source)!r} is prepared already; run it with --data {source}")
    here, there = source.resolve(), out.resolve()
    if here == there:
        raise UsageError(f"--source and --out are the same folder, {str(source)!r}; a release is never written to")
    if here.is_relative_to(there) or there.is_relative_to(here):
        raise UsageError(
            f"of --source {str(source)!r} and --out {str(out)!r} one lies in the other; take an --out outside of the release"
        )
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {str(out)!r} is a file; give a folder to be made")
    if out.is_dir() and not is_prepared(out) and (_has_lines(out) or {entry.name for entry in out.iterdir()} - _FIRST_NAMES):
        raise UsageError(f"the folder {str(out)!r} is not empty and no preparation was begun in it; take another --out")


def _has_lines(out: Path) -> bool:
    file = out / EPISODES
    return file.is_file() and file.stat().st_size > 0


def _same(begun: Preparation, requested: Preparation, out: Path) -> Preparation:
    """The preparation that was begun, if it is the requested one; ``UsageError`` names the difference."""
    other = begun.source != requested.source and Path(begun.source).is_dir()  # a release that was only moved is the same one
    if begun.benchmark != requested.benchmark or other:
        raise UsageError(
            f"the folder {str(out)!r} holds {begun.benchmark!r} prepared from {begun.source!r}; take another --out"
        )
    if begun.options != requested.options:
        raise UsageError(
            f"the folder {str(out)!r} was begun with the options {begun.options}, not {requested.options}; take another --out"
        )
    if begun.screenshots != requested.screenshots:
        how = "with" if begun.screenshots else "without"
        raise UsageError(f"the folder {str(out)!r} was begun {how} screenshots; go on so, or take another --out")
    _check_limit(begun.episodes, requested.limit, out)
    begun.source = requested.source
    return begun


def _check_limit(episodes: int, limit: int | None, out: Path) -> None:
    if limit is not None and limit < episodes:
        raise UsageError(f"the folder {str(out)!r} holds {episodes:,} episodes already, more than --limit {limit}")


@contextmanager
def _writing(out: Path, kept: str = "") -> Iterator[None]:
    """Turn an error of the operating system into one sentence, which ends with ``kept``."""
    try:
        yield
    except OSError as error:
        full = " (the disk is full)" if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else ""
        raise JournalError(f"cannot write to {str(error.filename or out)!r}: {error.strerror}{full}{kept}") from None


def _transfer(release: Release, parts: Sequence[str], writer: _Writer, on_progress: Callable[[int, int | None], None]) -> None:
    expected, limit = release.episodes_expected, writer.state.limit
    if limit is not None:
        expected = limit if expected is None else min(limit, expected)
    on_progress(len(writer.done), expected)
    before = frozenset(writer.done)  # not what is added now: an episode that is twice in the release must be detected
    for part in parts:
        damaged = len(release.skipped)
        episodes = release.episodes(part, before.__contains__)
        while limit is None or len(writer.done) < limit:  # checked first: data beyond the limit may be damaged
            released = next(episodes, None)
            if released is None:
                break
            try:
                writer.add(released)
            except ScreenshotError as error:
                release.refuse(
                    DataError(f"episode {released.episode.key}: {error}; --without-screenshots prepares the annotations alone")
                )
            except DataError as error:
                release.refuse(error)
            on_progress(len(writer.done), expected)
        else:
            return
        if len(release.skipped) == damaged:  # a part with damage is read again, in case it was repaired
            writer.end_part(part)


class _Writer:
    def __init__(self, out: Path, state: Preparation) -> None:
        self.state = state
        self.done: set[EpisodeKey] = set()
        self.added = 0
        self._out = out
        self._partial = out / PARTIAL

    def __enter__(self) -> _Writer:
        self._out.mkdir(parents=True, exist_ok=True)
        self._file = open_descriptor(self._out / EPISODES, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"the folder {str(self._out)!r} is being prepared by another process") from None
            shutil.rmtree(self._partial, ignore_errors=True)
            self._end = self._read_done()
            if not self.done:
                self._note()
        except BaseException:
            os.close(self._file)
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        shutil.rmtree(self._partial, ignore_errors=True)
        os.close(self._file)

    def _read_done(self) -> int:
        """Note the episodes that are there, cut a torn last line off, and return where the file ends."""
        file = self._out / EPISODES
        end = 0
        with open_file(file) as stream:
            for number, line in enumerate(stream, 1):
                if not line.endswith(b"\n"):
                    break
                self.done.add(line_head(self.state.benchmark, f"{file}, line {number}", line).key)
                end += len(line)
        os.ftruncate(self._file, end)
        return end

    def add(self, released: ReleasedEpisode) -> None:
        """Put an episode's screenshots in place, then its line."""
        episode = released.episode
        if episode.key in self.done:
            raise DataError(f"the release has episode {episode.key} twice")
        line = episode_line(episode) + b"\n"
        if self.state.complete:  # a finished folder is extended, so it is incomplete until the end
            self.state.complete = False
            self._note()
        if self.state.screenshots:
            placed: set[str] = set()
            for step in episode.steps:
                if step.screenshot not in placed:
                    self._add_screenshot(released, step.screenshot, step)
                    placed.add(step.screenshot)
        written = 0
        try:
            while written < len(line):
                written += os.pwrite(self._file, line[written:], self._end + written)
        except OSError:
            os.ftruncate(self._file, self._end)
            raise
        self._end += len(line)
        self.done.add(episode.key)
        self.added += 1

    def _add_screenshot(self, released: ReleasedEpisode, path: str, step: StepTaskModel) -> None:
        try:
            target = path_inside(self._out, path)
        except ValueError as error:
            raise DataError(f"step {step.key}, field screenshot: {path[:200]!r} {error}") from None
        if target.relative_to(self._out.resolve()).parts[0] in OWN_NAMES:
            raise DataError(f"step {step.key}, field screenshot: {path!r} is the name of a file of the folder's own")
        if path not in released.screenshots:
            raise DataError(f"step {step.key}, field screenshot: the release gives no image for {path!r}")
        try:
            data = released.screenshots[path]()
        except OSError as error:
            raise DataError(f"step {step.key}: the screenshot {path!r} cannot be read: {error.strerror}") from None
        try:
            found = probe(data)
        except ValueError as error:
            raise DataError(f"step {step.key}: the screenshot {path!r} {error}") from None
        if other := found.other_size(step.screenshot_size):
            raise DataError(f"step {step.key}: the screenshot {path!r} {other}")
        if target.is_file():
            if read_bytes(target) != data:
                raise DataError(f"step {step.key}: the release has two different images for {path!r}")
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        self._put(target, data)

    def _put(self, target: Path, data: bytes, *, sync: bool = False) -> None:
        """Write a file so that under its name there is all of it or nothing."""
        self._partial.mkdir(exist_ok=True)
        partial = self._partial / f"{os.getpid()}{target.suffix}"
        with partial.open("wb") as stream:
            stream.write(data)
            if sync:
                stream.flush()
                os.fsync(stream.fileno())
        partial.replace(target)

    def _note(self) -> None:
        self._put(self._out / PREPARED, self.state.model_dump_json(indent=2).encode() + b"\n", sync=True)

    def end_part(self, part: str) -> None:
        """Note that a part of the release is read to its end."""
        os.fsync(self._file)
        if part not in self.state.parts:  # if a release has grown, its parts are read twice
            self.state.parts.append(part)
        self._note()

    def finish(self) -> None:
        """Write the index and mark the folder as complete."""
        from guieval.data.shipped import __version__

        os.fsync(self._file)
        index = EpisodeIndex(self.state.benchmark)
        digest = hashlib.sha256()
        first: dict[str, Any] | None = None
        start = 0
        with open_file(self._out / EPISODES) as stream:
            for number, line in enumerate(stream, 1):
                first = first or from_json(line)
                digest.update(line)
                ref = line_head(self.state.benchmark, f"{self._out / EPISODES}, line {number}", line)
                index.add(ref, number, start, len(line))
                start += len(line)
        if first is None:
            raise DataError("the release has no episode that can be prepared")
        self.state.dataset, self.state.setting = first["dataset"], first["setting"]
        self._put(self._out / INDEX, index.to_json(), sync=True)
        self.state.episodes, self.state.steps = len(index), sum(index.lengths)
        self.state.sha256, self.state.version, self.state.complete = digest.hexdigest(), __version__, True
        self._note()


def export_episodes(benchmark: ABCBenchmark, out: Path, *, limit: int | None = None) -> tuple[int, int]:
    """Write a benchmark's annotations, or its first ``limit`` episodes, to ``out``; returns how many episodes and steps.

    The file is packed when its name ends in ``.gz``. It takes its name when it is whole. Raises :class:`UsageError` for a
    file that is there already, and what loading raises.
    """
    if not out.name.endswith((".jsonl", ".jsonl.gz")):
        raise UsageError(f"--out is {str(out)!r}; expected a file NAME.jsonl or NAME.jsonl.gz")
    if out.exists():
        raise UsageError(f"the file {str(out)!r} exists already; give another --out, or delete it")
    episodes = steps = 0
    with _writing(out), becoming(out) as partial:
        out.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as plain, _packed(plain, out) as stream:
            for episode in itertools.islice(benchmark, limit):
                stream.write(episode_line(episode) + b"\n")
                episodes, steps = episodes + 1, steps + len(episode)
    return episodes, steps


def _packed(stream: BinaryIO, out: Path) -> AbstractContextManager[BinaryIO | gzip.GzipFile]:
    if out.suffix == ".gz":
        return gzip.GzipFile("", "wb", fileobj=stream, mtime=0)  # no time in it: the same episodes give the same bytes
    return nullcontext(stream)


def _finished(kind: type[ABCBenchmark], out: Path, state: Preparation, *, added: int) -> Prepared:
    counts = Counts()
    with open_file(out / EPISODES) as lines:
        for line in lines:
            values = from_json(line)
            steps = ((step.get("groups") or {}, step["action"]["type"]) for step in values["steps"])
            counts.add(values.get("split", "test"), values.get("subset", ""), steps)
    return Prepared(out, state, compare(kind.published, counts), added)
