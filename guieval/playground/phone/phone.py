"""The phone as an immutable value: it has a screen, and an action of the unified space gives the next phone.

This is the environment of an agent. Time passes only with actions: a loading page is complete after the next ``WAIT``, and a
short message disappears after any action.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from guieval.actions import Action, Click, Direction, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait
from guieval.errors import UsageError
from guieval.playground.phone import transitions as do
from guieval.playground.phone.dice import Dice
from guieval.playground.phone.layout import Screen, lay_out
from guieval.playground.phone.state import Effects, Size, State, View, bind
from guieval.playground.phone.world import furnish

if TYPE_CHECKING:
    from PIL.Image import Image

MIN_WIDTH, MAX_WIDTH = 360, 4320
MIN_RATIO, MAX_RATIO = 1.6, 3.0
SWIPE = 0.6
"""The share of the scrolling area's height by which one swipe moves the content."""


def checked_size(size: Size) -> Size:
    """``size`` itself, or :class:`UsageError` when no phone of that (width, height) in pixels can be drawn."""
    width, height = size
    if not (MIN_WIDTH <= width <= MAX_WIDTH and MIN_RATIO * width <= height <= MAX_RATIO * width):
        raise UsageError(
            f"a phone of {width} x {height} pixels cannot be drawn: the width must be {MIN_WIDTH} to {MAX_WIDTH}, "
            f"the height {MIN_RATIO:g} to {MAX_RATIO:g} times the width"
        )
    return size


@dataclass(frozen=True)
class Phone:
    """One moment of the simulated phone. Immutable: :meth:`apply` returns another one."""

    state: State

    @classmethod
    def furnished(cls, seed: int, number: int, size: Size) -> Phone:
        """The phone that episode ``number`` of ``seed`` begins with, on its home screen, ``size`` in pixels.

        Raises :class:`UsageError` when the size cannot be drawn.
        """
        return cls(furnish(Dice("phone", seed, number), checked_size(size)))

    @cached_property
    def screen(self) -> Screen:
        return lay_out(self.state)

    def render(self) -> Image:
        """The screenshot: an RGB image of the phone's size."""
        from guieval.playground.phone.drawing import draw

        return draw(self.screen)

    def apply(self, action: Action) -> Phone:
        """The phone after ``action``; an action without a target (a tap on the background, an unknown app) changes nothing.

        ``RECENT`` and actions outside the unified space change nothing either. Raises ``ValueError`` after a ``STOP``.
        """
        if self.state.stopped:
            raise ValueError(f"the episode is over: it was stopped as {self.state.stopped!r}")
        state = replace(self.state, toast="")
        calm = Phone(state) if self.state.toast else self
        match action:
            case Stop():
                return Phone(replace(state, stopped=action.status))
            case Wait():
                return Phone(state.with_view(replace(state.view, loading=False)) if state.view else state)
            case Open():
                return Phone(_open(state, action.app))
            case Type():
                return Phone(state if state.overlay else do.insert(state, action.text))
            case Press():
                return Phone(calm._pressed(action.button))
            case Scroll():
                return Phone(_scrolled(state, calm.screen, action.point, action.direction))
            case Click() | LongPress():
                element = self.screen.hit(action.point)  # a short message still covers what is below it
                if element is None:
                    return Phone(state)
                held = isinstance(action, LongPress)
                return Phone(calm._touched(element.widget.hold if held else element.widget.tap))
            case _:
                return Phone(state)

    def _touched(self, effects: Effects) -> State:
        if effects == (bind(do.enter),):
            return self._pressed("ENTER")
        return do.perform(self.state, effects)

    def _pressed(self, button: str) -> State:
        state, view = self.state, self.state.view
        if button == "HOME":
            return replace(state, stack=(), overlay=None, home_page=0)
        if button == "BACK":
            if state.overlay:
                return do.close(state)
            return _back(state, view) if view else state
        if button == "ENTER" and view and view.focus and not state.overlay:
            return self._entered(view)
        return state

    def _entered(self, view: View) -> State:
        """ENTER runs a search, sends a chat message, breaks a line in a long field and moves on from a short one."""
        if view.focus == "search":
            if self.screen.page and self.screen.page.live_search:
                return self.state.with_view(replace(view, focus=""))
            return do.submit(self.state)
        if view.focus == "message":
            return do.send_message(self.state)
        fields = [element for element in self.screen.elements if element.role == "field"]
        places = {element.name.partition(":")[2]: index for index, element in enumerate(fields)}
        here = places.get(view.focus)
        if here is not None and fields[here].widget.lines > 1:
            return do.insert(self.state, "\n")
        following = fields[here + 1].name.partition(":")[2] if here is not None and here + 1 < len(fields) else ""
        return self.state.with_view(replace(view, focus=following))


def _back(state: State, view: View) -> State:
    """BACK closes one thing: the keyboard, else the search, else the page."""
    if view.focus and not view.loading:
        return state.with_view(replace(view, focus=""))
    if view.query or view.text("search"):
        return state.with_view(View(view.app, view.page, view.item, view.tab))
    return do.back(state)


def _open(state: State, name: str) -> State:
    wanted = name.strip().lower()
    app = next((app for app in state.apps if app.lower() == wanted), None)
    if app is None:
        return state
    return do.launch(do.close(state), app)


def _scrolled(state: State, screen: Screen, point: Point, direction: Direction) -> State:
    if state.overlay or screen.scroll_area is None:
        return state
    if not screen.scroll_area.holds(*screen.pixel(point)):
        return state
    if screen.page is None:
        step = {"left": 1, "right": -1}.get(direction, 0)
        return replace(state, home_page=min(max(state.home_page + step, 0), len(state.home) - 1))
    if state.view is None or direction in ("left", "right"):
        return state
    if direction == "down" and screen.page.refreshes and screen.scroll == 0:
        return do.reload(state)
    forward = (direction == "up") != screen.page.from_end
    moved = screen.scroll + round(SWIPE * screen.page_height) * (1 if forward else -1)
    return state.with_view(replace(state.view, scroll=min(max(moved, 0), screen.max_scroll)))
