"""One page with what a screenshot of a page lacks, acted on by its pictures alone; every environment of web pages passes it."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from guieval.actions import Click, ExecutableAction, Hotkey, Point, Press, Stop, Type
from guieval.connectors.pages.window import BAR
from guieval.online import ABCDevice, ABCEnvironment, Observation
from tests.online.devices import on

WEB = Path(__file__).parent / "web"
ONE, TWO = WEB / "one.html", WEB / "two.html"
BUTTON, CHOSEN, GREEN = (11, 87, 208), (25, 103, 210), (0, 160, 0)
LIST, ALERT, CONFIRM, PROMPT, NEW_TAB, SAME_TAB, WINDOW, FILE = (
    (250 + 500 * x, 62 + 125 * y) for y in range(4) for x in (0, 1)
)
BACK = Press(button="BACK")


def area(seen: Observation, colour: tuple[int, int, int]) -> tuple[float, float, float, float] | None:
    """Left, top, right and bottom in [0, 1000] of what has a colour, or nearly."""
    image = Image.open(BytesIO(seen.screenshot)).convert("RGB")
    assert image.size == seen.size
    rows, columns = np.nonzero((abs(np.asarray(image, dtype=int) - colour) < 12).all(axis=2))
    if len(rows) < 20:
        return None
    width, height = (1000 / length for length in image.size)
    return columns.min() * width, rows.min() * height, columns.max() * width, rows.max() * height


def do_all(environment: ABCEnvironment, height: int, *, address_bar: bool = False) -> None:
    """Act as a person on a page of ``height`` CSS pixels; only the pictures say where a button or a line of a list is."""
    top = BAR / (height + BAR) * 1000 if address_bar else 0

    async def work(device: ABCDevice) -> None:
        async def click(place: tuple[float, float]) -> Observation:
            return await device.step([Click(point=Point(place[0], top + place[1] * (1000 - top) / 1000))])

        async def on_colour(seen: Observation, colour: tuple[int, int, int], lines: float = 0, *more: ExecutableAction) -> bool:
            """Click on the middle of what has a colour, or ``lines`` of its heights below; whether it is still there."""
            left, up, right, down = area(seen, colour) or pytest.fail(f"nothing is {colour}")
            place = Point((left + right) / 2, (up + down) / 2 + lines * (down - up))
            return area(await device.step([*more, Click(point=place)]), colour) is not None

        await device.reset(environment.tasks()[0], 0)
        assert area(await device.step([BACK]), GREEN) is None, "BACK leaves the task"
        for place, back in ((NEW_TAB, BACK), (SAME_TAB, BACK), (NEW_TAB, Hotkey(keys=("ctrl", "w")))):
            assert area(await click(place), GREEN), "a page that was opened is not shown"
            assert area(await device.step([back]), GREEN) is None, "the page before is not shown again"
        assert area(await click(WINDOW), GREEN) and area(await click(LIST), GREEN)
        assert area(await device.step([Hotkey(keys=("alt", "left"))]), GREEN) is None
        assert not await on_colour(await click(LIST), CHOSEN, 1)
        assert not await on_colour(await click(ALERT), BUTTON)
        assert not await on_colour(await click(CONFIRM), BUTTON)
        assert area(await click(CONFIRM), BUTTON) and area(await device.step([Hotkey(keys=("esc",))]), BUTTON) is None
        assert not await on_colour(await click(FILE), BUTTON)
        for address in ("file:///etc/passwd", "http://127.0.0.2/") if address_bar else ():
            refused = await device.step([Hotkey(keys=("ctrl", "l")), Type(text=f"{address}\n")])
            assert not await on_colour(refused, BUTTON)
        assert not (await device.score()).success
        assert not await on_colour(await click(PROMPT), BUTTON, 0, Type(text="Ada"))
        await device.step([Stop()])
        score = await device.score()
        assert score.success, score.reason

    on(environment, work)
