"""Settings and campaigns in YAML: a file becomes settings, or one sentence about the problem."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import ClassVar

from guieval.data.shipped import config_folder
from guieval.errors import UsageError
from guieval.running.campaign import planned, read_campaign
from guieval.running.config import parse, read_settings

from . import mutations
from .engine import Target, sentence

_NUMBERS = (
    *("0x" + "f" * 5000, "9" * 5000, "1e999", ".nan", "-.inf"),
    *("*a", "&a [*a]", "!!python/name:os.system", "2001-13-45", "[" * 2000),
)


class SettingFiles(Target):
    name: ClassVar[str] = "setting-files"

    def __init__(self, folder: Path, real: Path | None) -> None:
        self._folder = folder
        configs = config_folder()
        self._material = {
            kind: [file.read_text(encoding="utf-8") for file in sorted((configs / kind).glob("*.yaml"))]
            for kind in ("campaigns", "runs")
        }

    def check(self, dice: Random) -> None:
        kind = dice.choice(sorted(self._material))
        text = mutations.text(dice, dice.choice(self._material[kind]), dice.choice(self._material[kind]))
        if dice.random() < 0.3:
            lines = text.split("\n")
            at = dice.randrange(len(lines))
            lines[at] = lines[at].partition(":")[0] + ": " + dice.choice(_NUMBERS)
            text = "\n".join(lines)
        file = self._folder / "given.yaml"
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            if kind == "campaigns":
                planned(read_campaign(file), self._folder / "out")
            else:
                parse(read_settings(file, "configuration"))
        except UsageError as error:
            sentence(error)
