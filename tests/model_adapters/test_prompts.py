from __future__ import annotations

import hashlib
import inspect
from pathlib import Path

import pytest

from guieval.models import load_template
from guieval.registry import adapter_class

PROMPTS = Path(inspect.getfile(adapter_class("qwen2_5_vl"))).parent / "prompts"

# first 16 digits of the SHA-256 of each published text, so that an editor's "tidying" of a wire format is noticed
DIGESTS = {
    "infigui_r1-androidcontrol-user-low": "481a5961422ad429",
    "qwen2_5_vl-computer-grounding": "f7dac86095cb91ba",
    "qwen2_5_vl-mobile-system": "9f31c0b7d44bc41a",
    "qwen2_5_vl-mobile-user": "7d148b1600d62dc5",
    "qwen3_vl-mobile-system": "9d060af15f62acb3",
    "qwen3_vl-mobile-user": "ec6b0e821aa4d4b4",
    "ui_tars-androidcontrol": "9c6ea0c5f4632fea",
    "ui_tars-androidworld": "cebe472901357166",
    "ui_tars-computer": "51d79a94f8ce39a9",
    "ui_tars-grounding": "53ba702217efff56",
    "ui_tars-guiodyssey": "b6fb3122447b28ac",
    "ui_tars-mobile": "362f2d5717fa9387",
    "ui_tars_1_5-computer": "5363caa4e115ab3d",
    "ui_tars_1_5-grounding": "191caaba7ac95bae",
    "ui_tars_1_5-mobile": "2367ade469667c65",
}


@pytest.mark.parametrize(("name", "digest"), DIGESTS.items())
def test_published_prompts_are_byte_exact(name: str, digest: str) -> None:
    text = load_template(PROMPTS / f"{name}.txt")
    assert hashlib.sha256(text.encode("utf-8")).hexdigest().startswith(digest)
