"""Archives that a hub serves: they are unpacked into their folder, or refused in a sentence."""

from __future__ import annotations

import io
import shutil
import zipfile
from pathlib import Path
from random import Random
from typing import ClassVar

from guieval.data.hub import unpack
from guieval.errors import DataError

from . import mutations
from .engine import Target, Wrong, sentence

_NAMES = (
    *("a.txt", "images/b.png", "../up", "/root", "c/../../up", "d/", "d/e"),
    *("a.txt/f", "n" * 300, "g\x1b[2J", "h\\..\\i", "j:k"),
)


class Downloads(Target):
    name: ClassVar[str] = "downloads"

    def __init__(self, folder: Path, real: Path | None) -> None:
        self._folder = folder

    def check(self, dice: Random) -> None:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", dice.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
            for name in dice.sample(_NAMES, dice.randint(1, 4)):
                entry = zipfile.ZipInfo(name)
                entry.external_attr = dice.choice((0o644, 0o644, 0o120777, 0o010644)) << 16
                archive.writestr(entry, bytes(dice.randrange(256) for _ in range(50)) * dice.choice((1, 40)))
        shutil.rmtree(self._folder / "deep", ignore_errors=True)
        inside = self._folder / "deep" / "er" / "in"
        inside.mkdir(parents=True)
        content = packed.getvalue()
        (inside / "x.zip").write_bytes(mutations.data(dice, content) if dice.random() < 0.8 else content)
        try:
            unpack(inside / "x.zip")
        except DataError as error:
            sentence(error)
        outside = [path for path in self._folder.rglob("*") if not path.is_dir() and not path.is_relative_to(inside)]
        if outside or any(path.is_symlink() or not (path.is_file() or path.is_dir()) for path in inside.rglob("*")):
            raise Wrong(f"an archive made other files: {outside or sorted(inside.rglob('*'))}")
