"""What the screenshots of web pages depend on here: the browser, the fonts, and a page that shows their effect."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import sha256
from urllib.parse import quote

from guieval.connectors.pages.browser import Browser
from guieval.connectors.pages.fonts import fonts_digest
from guieval.data.screenshots import picture
from guieval.errors import EnvironmentFailure
from guieval.online.contract import UNKNOWN

SIZE = (320, 240)
PAGE = """<!doctype html><meta charset="utf-8"><body style="margin: 4px; font: 13px sans-serif">
<b>Sphinx of black quartz</b>, <i>judge my vow</i> 0123456789 <code>if (a &lt; b)</code>
<span style="font-family: serif">na&iuml;ve</span> &#x4e2d;&#x6587; &rarr; &#x2713;<br>
<button>Button</button> <input value="text" size="9"> <input type="checkbox" checked> <input type="radio">
<select><option>one</option></select> <progress value=".4"></progress><hr>
<div style="width: 90px; height: 40px; border-radius: 9px; background: linear-gradient(#36c, #fc0)"></div>
"""
ADDRESS = f"data:text/html;charset=utf-8,{quote(PAGE)}"
"""Text of several kinds, form controls, round corners, a gradient and a shadow."""


@cache
def look_of_pages(scale: float, cjk: bool = False) -> Mapping[str, str]:
    """The identity of a browser environment whose pages are drawn ``scale`` times as large; it starts a Chromium once."""
    with ThreadPoolExecutor(1) as thread:  # an event loop may run already
        browser, page = thread.submit(asyncio.run, _drawn(scale, cjk)).result()
    return {
        "browser": browser,
        "fonts": fonts_digest(cjk),
        "reference page": page,
        "device scale": f"{scale:g}",
    }


async def _drawn(scale: float, cjk: bool) -> tuple[str, str]:
    try:
        browser = await Browser.launch(SIZE, scale, cjk=cjk)
    except EnvironmentFailure:
        return UNKNOWN, UNKNOWN
    try:
        await browser.new_page(ADDRESS)
        return browser.version, picture_digest(await browser.screenshot())
    except EnvironmentFailure:
        return browser.version, UNKNOWN
    finally:
        await browser.close()


def picture_digest(screenshot: bytes) -> str:
    """A digest of an image's pixels, however they are compressed."""
    return sha256(picture(screenshot).tobytes()).hexdigest()[:12]
