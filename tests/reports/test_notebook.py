"""What a notebook shows of benchmarks and episodes."""

from __future__ import annotations

import io
import pickle
import pkgutil
import re
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

import guieval
from guieval.data.benchmark import ABCBenchmark, EpisodeRef, LocatedEpisode
from guieval.errors import DataError, UsageError
from guieval.reports.marks import BLUE
from guieval.reports.notebook import VIEWS, register, views
from guieval.reports.notebook.views import MOST_THUMBNAILS
from guieval.steps import Episode
from tests.kernels import html_of
from tests.reports.viewer.made_run import at, task

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


class Shown(ABCBenchmark):
    """One episode of grey screens with a hostile name in every text."""

    name = "shown"
    title = HOSTILE
    source = "made by a test"
    protocol = "guievalkit"
    length = 2

    def index(self) -> Sequence[EpisodeRef]:
        return [EpisodeRef(self.load_all().key, self.length)]

    def load(self, ref: EpisodeRef) -> Episode:
        return self.load_all()

    def load_all(self) -> Episode:
        values = {"benchmark": "shown", "instruction": HOSTILE, "low_level_instruction": HOSTILE, "action": at(300, 300)}
        return Episode(
            steps=tuple(task(HOSTILE, step, self.length, screenshot="s.png", **values) for step in range(self.length))
        )


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    Image.new("RGB", (300, 600), "#808080").save(tmp_path / "s.png")
    return Shown(tmp_path)


def pictures(page: str) -> list[Image.Image]:
    return [Image.open(io.BytesIO(b64decode(data))) for data in re.findall(r"data:image/jpeg;base64,([^\"]+)", page)]


def test_an_episode_shows_its_references_on_thumbnails(shown: Shown) -> None:
    small = pictures(html_of(shown.episode(0)))
    assert [picture.size for picture in small] == [(120, 240)] * 2
    ring = small[0].getpixel((36, 72))
    assert isinstance(ring, tuple) and ring[2] > 130 > ring[0], f"{ring} is not near {BLUE}"


def test_a_benchmark_shows_what_it_holds_and_its_first_episodes(shown: Shown) -> None:
    page = html_of(shown)
    assert "guievalkit" in page and len(pictures(page)) == 2
    assert "<script" not in page and "<img src=x" not in page and page.count("&lt;script&gt;") >= 5


def test_a_benchmark_gives_an_episode_with_its_folder_which_is_not_written_down(shown: Shown) -> None:
    ref = shown.index()[0]
    plain = shown.load(ref)
    for located in (shown.episode(0), shown.episode(ref.key.episode_id), *shown):
        assert isinstance(located, LocatedEpisode) and located.root == shown.root and located == plain and plain == located
        assert located.model_dump_json() == plain.model_dump_json() and pickle.loads(pickle.dumps(located)) == located
    assert "benchmark.episode(...)" in html_of(plain) and pictures(html_of(plain)) == []


def test_ipython_shows_every_type_that_has_a_view(shown: Shown) -> None:
    formatter = pytest.importorskip("IPython.core.formatters").DisplayFormatter()
    register(SimpleNamespace(display_formatter=formatter))
    html = formatter.formatters["text/html"]
    assert html(shown) == html_of(shown) and html(shown.episode(0)) == html_of(shown.episode(0)) and html(shown.root) is None
    assert all(callable(pkgutil.resolve_name(name)) and callable(getattr(views, view)) for name, view in VIEWS.items())


def test_a_missing_screenshot_and_a_long_episode(shown: Shown) -> None:
    (shown.root / "s.png").unlink()
    page = html_of(shown.episode(0))
    assert page.count("does not exist") == 2
    shown.length = MOST_THUMBNAILS + 3
    assert "and 3 more steps" in html_of(shown.episode(0))


def test_data_that_cannot_be_read_is_one_sentence(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(ref: EpisodeRef) -> Episode:
        raise DataError(f"s.json, line 3: {HOSTILE}")

    monkeypatch.setattr(shown, "load", fail)
    page = html_of(shown)
    assert "s.json, line 3" in page and "<script" not in page


def test_mistakes_name_what_there_is() -> None:
    demo = guieval.load_benchmark("demo", episodes=2)
    assert demo.episode("s0-0001").key.episode_id == "s0-0001" and demo.episode(0).root == demo.root
    for which, sentence in ((2, "no episode 2: it has 2, counted from 0"), ("s0-0009", "did you mean 's0-000")):
        with pytest.raises(UsageError, match=sentence):
            demo.episode(which)
