"""The image loader: what it remembers of a screenshot must not depend on who asked first."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path

from PIL import Image

from guieval.data.screenshots import Screenshot, file_digest, picture
from guieval.errors import ScreenshotError
from guieval.models import ImageRef
from guieval.running.runner.image_cache import ImageLoader
from tests.pictures import KINDS, Kind
from tests.rows import every_row
from tests.scripted import ACTIONS, make_episode

TASK = make_episode("a", ACTIONS).steps[0].model_copy(update={"screenshot": "a.png"})


async def outcomes(root: Path, images: list[ImageRef]) -> list[object]:
    with ThreadPoolExecutor(2) as threads:
        loader = ImageLoader(root, threads, form="base64")
        loaded = [await asyncio.gather(loader.load(image), return_exceptions=True) for image in images]
    return [each if isinstance(each, ScreenshotError) else each.size for (each,) in loaded]  # type: ignore[union-attr]


@every_row("order", list(permutations(range(3))))
def test_a_record_with_a_wrong_size_fails_although_the_file_was_read_before(tmp_path: Path, order: tuple[int, ...]) -> None:
    Image.new("RGB", (30, 40)).save(tmp_path / "a.png")
    right = TASK.model_copy(update={"screenshot_size": (30, 40)})
    wrong = TASK.model_copy(update={"screenshot_size": (40, 30)})
    images = [ImageRef(right), ImageRef(right, (15, 20)), ImageRef(wrong)]
    seen = asyncio.run(outcomes(tmp_path, [images[number] for number in order]))
    results = dict(zip(order, seen, strict=True))
    assert (results[0], results[1]) == ((30, 40), (15, 20))
    assert isinstance(results[2], ScreenshotError) and "30x40" in str(results[2])


@every_row("kind", KINDS)
def test_what_is_sent_is_the_picture_at_every_size(tmp_path: Path, kind: Kind) -> None:
    """A model that gets a screen in its own size, and one that gets it smaller, must see the same colours and the same turn."""
    (tmp_path / "a.png").write_bytes(kind.data)
    height, width, _ = kind.pixels.shape
    task = TASK.model_copy(update={"screenshot_size": (width, height)})

    async def loaded() -> list[Screenshot]:
        with ThreadPoolExecutor(2) as threads:
            loader = ImageLoader(tmp_path, threads, form="base64")
            return [await loader.load(ImageRef(task, size)) for size in (None, (width, height), (20, 15))]

    for shown in asyncio.run(loaded()):
        expected = Image.fromarray(kind.pixels)
        if shown.size != expected.size:
            expected = expected.resize((20, 15), Image.Resampling.BICUBIC)
        assert picture(shown.data).tobytes() == expected.tobytes()
        assert shown.original == file_digest(kind.data)
