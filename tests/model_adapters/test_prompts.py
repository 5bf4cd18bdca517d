"""Every published prompt stays as it is: it is pinned by the golden file that it is sent in, or by a digest."""

from __future__ import annotations

import hashlib
import inspect
import re
from pathlib import Path

from guieval.models import load_template
from guieval.registry import adapter_class

from .test_golden_prompts import GOLDEN

PROMPTS = Path(inspect.getfile(adapter_class("qwen2_5_vl"))).parent / "prompts"
DIGESTS = {
    "agentcpm_gui-grounding-text-system": "5fe2f3cf4cc96481",
    "agentcpm_gui-grounding-text-user": "29e9a1112acc1c4d",
    "computer_use-functions": "d7b1012ab99bfd2e",
    "computer_use-mobile-functions": "74a433be0be092a6",
    "gui_r1-guiodyssey": "320450d7e9812d46",
    "phi_ground-points": "95b6d90453592f70",
    "magicgui-grounding-en": "b415600e12af6a6c",
    "magicgui-magicrich": "95336165fbac5d60",
    "magicgui-readme": "31dd3f4f36f8c885",
    "opencua-l1-system": "e6b5db753395aa1d",
    "opencua-l1_short-system": "ceefeaac45036622",
    "opencua-l2_short-system": "107b9915b204c9fb",
    "opencua-l3-system": "e4fb582ab45eec90",
    "opencua-l3_short-system": "e85734adc4eebd34",
    "os_atlas_pro-guiact": "0a91641a4e7aa250",
    "os_atlas_pro-guiodyssey": "2614e8ece51d5037",
    "qwen2_5_vl-computer-grounding": "f7dac86095cb91ba",
    "qwen3_5-computer-system": "f2d006997cccb8a0",
    "scalecua-computer-no-thinking-system": "e78ca05a9557fc58",
    "scalecua-computer-system": "cf33ac5eadde9da4",
    "ui_r1-androidcontrol-box": "097747eac9ffe53f",
    "ui_r1-screenspot-box": "47490b6eaf535db6",
    "ui_s1-paper-system": "1db938f291636844",
    "ui_s1-user-first": "e0e3d8f118501000",
    "ui_tars-androidworld": "cebe472901357166",
    "ui_tars-computer": "51d79a94f8ce39a9",
    "ui_tars-guiodyssey": "b6fb3122447b28ac",
    "ui_tars-mobile": "362f2d5717fa9387",
    "ui_tars_1_5-computer": "5363caa4e115ab3d",
    "ui_venus_1_5-cn": "b37b090f3aa8610c",
    "ui_venus_1_5-web": "ca44cd5456d23aa2",
}
"""First 16 digits of the SHA-256 of each text that no golden file holds as it is: most are for an option of no checkpoint."""
OURS = "openai_tools"
"""No author publishes a format for models behind an API."""


def test_every_published_prompt_is_byte_exact() -> None:
    golden = "".join(file.read_text(encoding="utf-8") for file in GOLDEN.glob("*.txt"))
    files = [file for file in PROMPTS.glob("*.txt") if not file.stem.startswith(OURS)]
    assert DIGESTS.keys() <= {file.stem for file in files}
    changed = []
    for file in files:
        text = load_template(file)
        whole = all(piece.strip() in golden for piece in re.split(r"\{\w+\}|<image>|<\|image_1\|>", text))
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
        if (None if whole else digest) != DIGESTS.get(file.stem):
            changed.append((file.name, digest))
    assert not changed, "a digest is for what no golden file holds, and for that alone"
