"""Screenshots of servers of others: what a model, a page and a recording show of them is one opaque, turned picture."""

from __future__ import annotations

from base64 import b64encode

import numpy as np

from guieval.connectors.servers.foreign_screenshots import read_screenshot
from guieval.data.screenshots import picture, probe
from tests.pictures import KINDS, Kind, colours, on_white
from tests.rows import every_row


@every_row("kind", KINDS)
def test_every_file_becomes_the_picture(kind: Kind) -> None:
    data, size = read_screenshot(b64encode(kind.data).decode())
    assert size == kind.pixels.shape[1::-1] and probe(data).ready and probe(data).format != "webp"
    assert np.array_equal(np.asarray(picture(data)), kind.pixels)


@every_row("channels", [3, 4])
def test_pixels_with_transparency_are_put_on_white(channels: int) -> None:
    pixels = colours(channels)
    data, size = read_screenshot(pixels)
    expected = on_white(pixels[..., :3], pixels[..., 3]) if channels == 4 else pixels
    assert size == pixels.shape[1::-1] and np.array_equal(np.asarray(picture(data)), expected)
