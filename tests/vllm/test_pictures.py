"""What guieval sends of every kind of image file, beside what vLLM's own loader and Qwen's processor make of it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guieval.data.screenshots import read_picture, read_screenshot
from tests.pictures import KINDS, Kind, Pixels
from tests.rows import every_row

OTHERWISE = {
    "16-bit grey": "vLLM clips what is above 255 to white",
    "16-bit grey, a clear grey": "vLLM clips what is above 255 to white",
    "RGB, a clear colour": "vLLM ignores the transparent colour",
}
"""Files that vLLM itself reads otherwise than guieval sends them."""


def by_vllm(data: bytes) -> Pixels:
    """The pixels that vLLM's server gives to a model's processor, (height, width, 3)."""
    from vllm.multimodal.media.image import ImageMediaIO

    image = ImageMediaIO().load_bytes(data).media
    assert image.mode == "RGB"
    return np.asarray(image)


@cache
def processor(fast: bool) -> Any:
    """Qwen2.5-VL's own, with the sizes and means of its release."""
    from transformers.models.qwen2_vl import image_processing_pil_qwen2_vl, image_processing_qwen2_vl

    if fast:
        return image_processing_qwen2_vl.Qwen2VLImageProcessor()
    return image_processing_pil_qwen2_vl.Qwen2VLImageProcessorPil()


def sent(folder: Path, kind: Kind) -> bytes:
    (folder / "a").write_bytes(kind.data)
    height, width, _ = kind.pixels.shape
    return read_screenshot(folder, "a", (width, height)).data


@every_row("kind", KINDS)
def test_vllm_sees_what_is_sent(tmp_path: Path, kind: Kind) -> None:
    assert np.array_equal(by_vllm(sent(tmp_path, kind)), kind.pixels)


@every_row("kind", KINDS)
def test_vllm_reads_the_file_itself_alike(kind: Kind) -> None:
    """Else a server that reads files by their URL, or any other client, would show the model something else."""
    assert np.array_equal(by_vllm(kind.data), kind.pixels) == (kind.name not in OTHERWISE)


@pytest.mark.parametrize("fast", [True, False])
@every_row("kind", KINDS)
def test_qwens_processor_gives_a_training_the_patches_that_a_server_has(tmp_path: Path, fast: bool, kind: Kind) -> None:
    from PIL import Image

    data = sent(tmp_path, kind)
    height, width, _ = kind.pixels.shape
    trained = read_picture(tmp_path, "a", (width, height))
    patches = [
        np.asarray(processor(fast)(images=[image], return_tensors="np")["pixel_values"])
        for image in (trained, Image.fromarray(by_vllm(data)), Image.fromarray(kind.pixels))
    ]
    assert np.array_equal(patches[0], patches[1]) and np.array_equal(patches[0], patches[2])
