"""The fonts of web pages, so that screenshots do not depend on those that are installed; LICENSE.txt has their source."""

from __future__ import annotations

import os
import sys
from hashlib import sha256
from pathlib import Path

from guieval.data.files import read_bytes

FOLDER = Path(__file__).parent


def fonts_variable(cjk: bool) -> dict[str, str]:
    """The variables of the environment for a Chromium with these fonts; with ``cjk``, and with Noto CJK if it is installed.

    Only Linux finds its fonts by fontconfig; elsewhere pages are in the installed ones.
    """
    name = "with_cjk.conf" if cjk else "fonts.conf"
    return {**os.environ, "FONTCONFIG_FILE": str(FOLDER / name)}


def fonts_digest(cjk: bool) -> str:
    """What the text of pages is in."""
    if sys.platform != "linux":
        return "installed"
    digest = sha256(b"".join(read_bytes(path) for path in sorted(FOLDER.glob("*.*")) if path.suffix in (".ttf", ".conf")))
    return digest.hexdigest()[:12] + " and installed Noto CJK" * cjk
