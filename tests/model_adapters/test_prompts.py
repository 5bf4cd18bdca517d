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
    "agentcpm_gui-grounding-function-system": "de5856f7e8d6624a",
    "agentcpm_gui-grounding-function-user": "0b251482658598e8",
    "agentcpm_gui-grounding-text-system": "5fe2f3cf4cc96481",
    "agentcpm_gui-grounding-text-user": "29e9a1112acc1c4d",
    "agentcpm_gui-system": "92852f64619d7b3c",
    "agentcpm_gui-user": "9a40833fb3e57503",
    "aguvis-agent-system": "4a27a4babe8fe868",
    "aguvis-grounding-system": "20c5b335faadbf9f",
    "aguvis-user": "a3653174ca15864d",
    "autoglm_phone-cn": "fdb98e99a1145537",
    "autoglm_phone-en": "ee35da6553a174e3",
    "cogagent-user": "a7eee16bc34d8ab5",
    "computer_use-functions": "d7b1012ab99bfd2e",
    "computer_use-grounding-system": "153c42fc016e36ef",
    "computer_use-mobile-functions": "74a433be0be092a6",
    "computer_use-system": "5cb501974dec0233",
    "fara-system": "b1b316d6040ae618",
    "fara-user-next": "9788655fb4f8d541",
    "glm-grounding": "77135b990770eba0",
    "glm_4_1v-mobile": "3f98679a5b72218f",
    "glm_4_5v-mobile": "2fd55e26aa925d6a",
    "glm_4_5v-mobile-additional-notes": "11296d53662895c3",
    "gta1-system": "b7a49e56bb9cf4f8",
    "gui_g2": "a318ec3c11ac1338",
    "gui_owl-computer-system": "adfd759215117432",
    "gui_owl-computer-user": "a2b44f0e72971658",
    "gui_owl-mobile-system": "b1a4c05b9f394d1d",
    "gui_owl-mobile-user": "bc3f50ad4149183b",
    "gui_owl-mobile-user-next-round": "02c5e65b70d4ab7b",
    "gui_owl_1_5-computer-system": "094160a5f8abf424",
    "gui_owl_1_5-mobile-system": "a7b494381939614c",
    "gui_owl_1_5-user": "2f0a10d9b8e49de0",
    "gui_plus-computer-system": "c75f6becbf1b16ce",
    "gui_plus-mobile-system": "8525d20e29b04d82",
    "gui_plus-mobile-user": "076b0d5ef5d3e2b5",
    "gui_r1-androidcontrol": "9fdc5b1f888362d6",
    "gui_r1-guiodyssey": "320450d7e9812d46",
    "gui_r1-screenspot": "775c8249c0497e21",
    "holo1_5": "d1ce545f220d9755",
    "infigui_g1-system": "f33a74b550c662ae",
    "infigui_g1-user": "6eb6a157539f6691",
    "infigui_r1-androidcontrol-system": "dd16a8f6c29487d0",
    "infigui_r1-androidcontrol-user-high": "7d148b1600d62dc5",
    "infigui_r1-androidcontrol-user-low": "481a5961422ad429",
    "infigui_r1-grounding-system": "f33a74b550c662ae",
    "infigui_r1-grounding-user": "3a6265b46f7ad8e0",
    "magicgui-androidcontrol": "f1bc5aa340d2da49",
    "magicgui-grounding-en": "b415600e12af6a6c",
    "magicgui-grounding-zh": "6fb13f3411e2ea2f",
    "magicgui-magicrich": "95336165fbac5d60",
    "magicgui-readme": "31dd3f4f36f8c885",
    "mai_ui-grounding-system": "7ceb3d4b0b5c634e",
    "mai_ui-mobile-no-thinking-system": "4349f74f53022e5b",
    "mai_ui-mobile-system": "86b907c1e936b8c9",
    "mimo_vl-agent-high": "aeef236200f01264",
    "mimo_vl-agent-low": "93dedf06f452cdbc",
    "mimo_vl-grounding": "eb3c319dce435e7c",
    "minicpm_gui-agent": "56ebe28e53aa617c",
    "minicpm_gui-grounding": "8bf37ade24c98929",
    "opencua-grounding-system": "20c5b335faadbf9f",
    "opencua-l1-system": "e6b5db753395aa1d",
    "opencua-l1_short-system": "ceefeaac45036622",
    "opencua-l2-system": "2df3ec939b1f95c9",
    "opencua-l2_short-system": "107b9915b204c9fb",
    "opencua-l3-system": "e4fb582ab45eec90",
    "opencua-l3_short-system": "e85734adc4eebd34",
    "opencua-user": "8a83d89c4f15877b",
    "os_atlas_base-grounding-bbox": "d261bb67e17a7eb7",
    "os_atlas_base-grounding-point-4b": "a38ee01af60b5e58",
    "os_atlas_pro-androidcontrol": "4d6c4769766fe197",
    "os_atlas_pro-guiact": "0a91641a4e7aa250",
    "os_atlas_pro-guiodyssey": "2614e8ece51d5037",
    "os_genesis-androidcontrol-high": "1e4b2317772f8cd2",
    "os_genesis-androidcontrol-low": "c4a2923825458e1d",
    "os_genesis-androidworld": "948d0765400a8bea",
    "qwen2_5_vl-computer-grounding": "f7dac86095cb91ba",
    "qwen2_5_vl-mobile-system": "9f31c0b7d44bc41a",
    "qwen2_5_vl-mobile-user": "7d148b1600d62dc5",
    "qwen2_vl-grounding": "b0d489a198e02d22",
    "qwen3_vl-mobile-system": "9d060af15f62acb3",
    "qwen3_vl-mobile-user": "ec6b0e821aa4d4b4",
    "se_gui-system": "1e6949778a1e11f8",
    "seeclick-agent": "400a0a0dd9ee4de2",
    "seeclick-grounding": "2910f8b05afc41e6",
    "seeclick-system": "75357d685f238b6a",
    "step_gui-first": "1e148c26e0d12cfa",
    "step_gui-last": "7175c07fd0a22ab4",
    "uground": "54df0635d10d65ab",
    "ui_ins-system": "4a7bce52737c43c2",
    "ui_r1-androidcontrol": "2d66af89d395a811",
    "ui_r1-screenspot": "99df92b1c10ce576",
    "ui_r1_e-grounding": "f84ad498ca6e5fd1",
    "ui_s1-system": "dea6d1c38e0bfc25",
    "ui_s1-user-first": "e0e3d8f118501000",
    "ui_s1-user-next": "884ef0c103a4855a",
    "ui_tars-androidcontrol": "9c6ea0c5f4632fea",
    "ui_tars-androidworld": "cebe472901357166",
    "ui_tars-computer": "51d79a94f8ce39a9",
    "ui_tars-grounding": "53ba702217efff56",
    "ui_tars-guiodyssey": "b6fb3122447b28ac",
    "ui_tars-mobile": "362f2d5717fa9387",
    "ui_tars_1_5-computer": "5363caa4e115ab3d",
    "ui_tars_1_5-grounding": "191caaba7ac95bae",
    "ui_tars_1_5-mobile": "2367ade469667c65",
    "ui_venus_1_5-cn": "b37b090f3aa8610c",
    "ui_venus_1_5-grounding": "00b36efb8fb15ead",
    "ui_venus_1_5-mobile": "94903e7ef6784a1e",
    "ui_venus_1_5-web": "ca44cd5456d23aa2",
    "ui_venus_ground-72b": "1a33d9511b9819f8",
    "ui_venus_ground-7b": "a318ec3c11ac1338",
    "ui_venus_navi-mobile": "74e8cba4558703fc",
}


@pytest.mark.parametrize(("name", "digest"), DIGESTS.items())
def test_published_prompts_are_byte_exact(name: str, digest: str) -> None:
    text = load_template(PROMPTS / f"{name}.txt")
    assert hashlib.sha256(text.encode("utf-8")).hexdigest().startswith(digest)


def test_every_published_prompt_is_watched() -> None:
    ours = "openai_tools"  # no author publishes a format for models behind an API
    assert {path.stem for path in PROMPTS.glob("*.txt") if not path.stem.startswith(ours)} == DIGESTS.keys()
