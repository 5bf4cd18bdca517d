"""A release whose every part, episode and image a test decides, and a preparation of it that is killed where a test says."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

from guieval.actions import Action, Click, Point, Stop
from guieval.data.benchmark import ABCBenchmark, EpisodeRef, PublishedCount, Release, ReleasedEpisode
from guieval.data.episodes.prepare import prepare
from guieval.errors import DataError
from guieval.steps import Episode, EpisodeKey
from tests.made_runs import step

SIZE = (8, 16)
Content: TypeAlias = Mapping[str, Sequence[ReleasedEpisode | DataError]]
"""What a release holds, part by part; an error is a damaged record."""
PARTS, EPISODES_A_PART, LENGTH = ("one", "two", "three"), 3, 3


@cache
def png(shade: int, size: tuple[int, int] = SIZE) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("L", size, shade % 256).save(buffer, format="PNG")
    return buffer.getvalue()


def episode(name: str, *, benchmark: str = "scripted", split: str = "test", **changes: Any) -> Episode:
    """Two clicks and a stop on the last screen once more."""
    actions: list[Action] = [Click(point=Point(125.0, 62.5)), Click(point=Point(500.0, 1000.0)), Stop()]
    about: dict[str, Any] = {"benchmark": benchmark, "dataset": "scripted", "split": split, "instruction": f"do {name}"}
    about |= {"screenshot_size": SIZE, "groups": {"app": name[0]}}
    steps = []
    for index, action in enumerate(actions):
        shown = {"screenshot": f"screenshots/{name}/{min(index, 1)}.png"}
        steps.append(step(action, episode=name, index=index, length=LENGTH, **{**about, **shown, **changes}))
    return Episode(steps=tuple(steps))


def released(whole: Episode, image: Callable[[str], bytes] | None = None) -> ReleasedEpisode:
    read = image or (lambda path: png(sum(path.encode())))
    return ReleasedEpisode(whole, {step.screenshot: partial(read, step.screenshot) for step in whole.steps})


class Script(Release):
    """The parts' episodes in order; an exception in their place is a damaged record. ``seen`` keeps what was read."""

    def __init__(self, parts: Content, seen: list[str]) -> None:
        super().__init__()
        self._parts = parts
        self._seen = seen
        self.episodes_expected = sum(map(len, parts.values()))

    def parts(self) -> Sequence[str]:
        return list(self._parts)

    def episodes(self, part: str, done: Callable[[EpisodeKey], bool]) -> Iterator[ReleasedEpisode]:
        self._seen.append(part)
        for each in self._parts[part]:
            if isinstance(each, DataError):
                self.refuse(each)
            elif not done(each.episode.key):
                self._seen.append(each.episode.key.episode_id)
                yield each


class Scripted(ABCBenchmark):
    """Its release is whatever :attr:`script` holds."""

    name = "scripted"
    title = "Scripted"
    source = "a test's script"
    dataset = "scripted"
    protocol = "guievalkit"
    script: Content
    seen: list[str]

    def index(self) -> list[EpisodeRef]:
        return []

    def load(self, ref: EpisodeRef) -> Episode:
        raise NotImplementedError

    @classmethod
    def release(cls, source: Path, /, **options: Any) -> Release:
        return Script(cls.script, cls.seen)


def scripted(script: Content | None = None, published: tuple[PublishedCount, ...] = ()) -> type[Scripted]:
    return type("Scripted", (Scripted,), {"script": script or whole_script(), "seen": [], "published": published})


def whole_script(image: Callable[[str], bytes] | None = None) -> dict[str, list[ReleasedEpisode | DataError]]:
    return {part: [released(episode(f"{part}-{number}"), image) for number in range(EPISODES_A_PART)] for part in PARTS}


def killed_at(moment: int, source: Path, out: Path) -> None:
    """Prepare, and be killed by the system at that moment: one is each image read and each report of progress."""
    left = [moment]

    def pass_moment(*progress: int | None) -> None:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def image(path: str) -> bytes:
        pass_moment()
        return png(sum(path.encode()))

    prepare(scripted(whole_script(image)), source, out, on_progress=pass_moment)


def kills(moments: Iterable[int], source: Path, out: Path) -> int:
    """How many preparations in processes of their own are killed, each at its moment, until one gets to its end."""
    for count, moment in enumerate(moments):
        if not (child := os.fork()):
            killed_at(moment, source, out)
            os._exit(0)
        if os.waitpid(child, 0)[1] != signal.SIGKILL:
            return count
    return count + 1
