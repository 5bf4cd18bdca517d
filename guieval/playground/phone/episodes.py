"""Episodes on the simulated phone: a task, and the trajectory of a solver that looks at each screen and acts on the phone.

No positions are scripted: the solver finds its targets in the screen's elements. An episode is returned only if replaying its
actions from the start achieves the task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count

from guieval.actions import Action, Boxes, Button, Click, Direction, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait
from guieval.playground.phone.dice import Dice
from guieval.playground.phone.layout import Element, PixelBox, Screen
from guieval.playground.phone.phone import Phone
from guieval.playground.phone.state import Size
from guieval.playground.phone.tasks import SUITS, Intent, NoSuchTask, Task, template_for
from guieval.playground.phone.transitions import perform
from guieval.playground.phone.widgets import Widget

VERSION = 1
"""Changes whenever the same seed, number and size give another episode or other pixels."""

DEFAULT_SIZE: Size = (360, 800)
MIN_STEPS, MAX_STEPS = 3, 13
_TRIES = 12


@dataclass(frozen=True)
class PhoneStep:
    """One step: the phone before it, the action, and the instruction for it.

    ``target`` is the element that the action is applied to (``None`` for actions without one).
    """

    phone: Phone
    action: Action
    instruction: str
    target: Element | None

    @cached_property
    def alternatives(self) -> tuple[Action, ...]:
        """Other actions that lead to exactly the same phone."""
        return equivalents(self.phone, self.action, self.target)

    @property
    def targets(self) -> Boxes:
        """The target's box in unified coordinates, if there is one."""
        return self._boxes([self.target] if self.target else [])

    @property
    def elements(self) -> Boxes:
        """The boxes of everything else that can be touched, in unified coordinates."""
        return self._boxes([element for element in self.phone.screen.interactive if element is not self.target])

    def _boxes(self, parts: Sequence[Element]) -> Boxes:
        return Boxes([[round(edge, 3) for edge in self.phone.screen.unified(part.box)] for part in parts])


@dataclass(frozen=True)
class PhoneEpisode:
    """A task with its reference trajectory; ``start`` is the phone before the first step."""

    seed: int
    number: int
    task: Task
    start: Phone
    steps: tuple[PhoneStep, ...]

    @property
    def size(self) -> Size:
        """(width, height) of the screenshots in pixels."""
        return self.start.state.size

    def __len__(self) -> int:
        return len(self.steps)


def generate_episode(seed: int, number: int, size: Size = DEFAULT_SIZE) -> PhoneEpisode:
    """Episode ``number`` (from 0) of ``seed`` on a phone of ``size`` (width, height) pixels.

    The same arguments give the same episode everywhere; nothing is drawn yet. Raises
    :class:`guieval.errors.UsageError` for a size that no phone has.
    """
    phone = Phone.furnished(seed, number, size)
    for attempt in count():
        dice = Dice("task", seed, number, attempt)
        template = template_for(seed, number)
        if attempt >= _TRIES:
            template = dice.pick(dice.pick(SUITS))
        try:
            task = template(dice, phone.state)
            start = Phone(perform(phone.state, task.before)) if task.before else phone
            steps = _solve(task, start, dice)
        except (NoSuchTask, _Lost):
            continue
        if MIN_STEPS <= len(steps) <= MAX_STEPS and _sound(task, start, steps):
            return PhoneEpisode(seed, number, task, start, steps)
    raise AssertionError("count() never ends")


def replay(start: Phone, actions: tuple[Action, ...]) -> Phone:
    """The phone after ``actions``, one after the other."""
    for action in actions:
        start = start.apply(action)
    return start


def _sound(task: Task, start: Phone, steps: tuple[PhoneStep, ...]) -> bool:
    """Whether the trajectory achieves the task, and a feasible task only with the last step before ``STOP``."""
    early = steps[:-1] if task.status == "finish" else steps[:1]
    if any(task.fulfilled(step.phone.state) for step in early):
        return False
    return task.achieved(replay(start, tuple(step.action for step in steps)).state)


class _Lost(Exception):
    """The solver cannot continue: its target does not exist, or cannot be touched."""


def _solve(task: Task, start: Phone, dice: Dice) -> tuple[PhoneStep, ...]:
    walk = _Walk(start, dice)
    for intent in task.intents:
        walk.settle()
        walk.pursue(intent)
    walk.settle()
    done = task.status == "finish"
    walk.act(Stop(status=task.status), "The task is done." if done else "The task cannot be done, stop here.")
    return tuple(walk.steps)


@dataclass
class _Walk:
    phone: Phone
    dice: Dice
    steps: list[PhoneStep] = field(default_factory=list)

    @property
    def screen(self) -> Screen:
        return self.phone.screen

    @property
    def focus(self) -> str:
        return self.phone.state.view.focus if self.phone.state.view else ""

    def act(self, action: Action, instruction: str, target: Element | None = None) -> None:
        after = self.phone.apply(action)
        if after == self.phone or len(self.steps) > MAX_STEPS:
            raise _Lost
        self.steps.append(PhoneStep(self.phone, action, instruction, target))
        self.phone = after

    def settle(self) -> None:
        """Wait for loading pages and close pop-ups."""
        while True:
            overlay = self.phone.state.overlay
            if overlay and any(choice.label == "Not now" for choice in overlay.choices):
                refuse = self.screen.find("choice:Not now")
                point = self.aim(refuse) if refuse else None
                if refuse and point and self.dice.chance(0.7):
                    self.act(Click(point=point), tapping(refuse), refuse)
                else:
                    self.act(Press(button="BACK"), "Go back to close the pop-up.")
            elif self.phone.state.view and self.phone.state.view.loading:
                self.act(Wait(), "Wait until the page has loaded.")
            else:
                return

    def pursue(self, intent: Intent) -> None:
        name = intent.target
        match intent.verb:
            case "open":
                self.act(Open(app=name), f"Open the {name} app.")
            case "icon":
                if self.screen.find(f"icon:{name}") is None:
                    self.swipe("left", f"Swipe left to find the {name} app.")
                self.tap(f"icon:{name}")
            case "tap":
                self.tap(name)
            case "hold":
                element, point = self.reach(name)
                self.act(LongPress(point=point), f'Press and hold "{element.label}".', element)
            case "fill":
                if self.focus != name:
                    self.tap(f"field:{name}")
                field = self.screen.find(f"field:{name}")
                self.act(Type(text=intent.text), f'Type "{intent.text}".', field)
            case "enter":
                instruction = "Press enter to search." if self.focus == "search" else "Press enter."
                self.act(Press(button="ENTER"), instruction)
            case "back":
                self.act(Press(button="BACK"), "Go back to the previous page.")
            case "home":
                self.act(Press(button="HOME"), "Go to the home screen.")
            case "pull":
                self.swipe("down", "Swipe down to refresh the list.")

    def tap(self, name: str) -> None:
        element, point = self.reach(name)
        self.act(Click(point=point), tapping(element), element)

    def reach(self, name: str) -> tuple[Element, Point]:
        """Scroll until ``name`` is visible; return the element and a point on it that nothing covers."""
        while True:
            self.settle()
            element = self.screen.find(name)
            if element and element.shown >= 0.6:
                point = self.aim(element)
                if point:
                    return element, point
            hidden = self.screen.hidden(name)
            if self.focus:
                self.act(Press(button="BACK"), "Go back to hide the keyboard.")
            elif hidden and self.screen.scroll_area:
                above = hidden.full.y1 < self.screen.scroll_area.y1
                direction: Direction = "down" if above else "up"
                self.swipe(direction, f'Swipe {direction} to find "{hidden.label}".')
            else:
                raise _Lost

    def aim(self, element: Element) -> Point | None:
        """A point near the middle of ``element``; ``None`` if all points that were tried are covered."""
        box = element.box
        for spread in (0.5, 0.5, 0.3, 0.6, 0.7, 0.0):
            x = (box.x1 + box.x2) / 2 + (box.x2 - box.x1) * self.dice.uniform(-spread, spread) / 2
            y = (box.y1 + box.y2) / 2 + (box.y2 - box.y1) * self.dice.uniform(-spread, spread) / 2
            point = self.point(x, y)
            if self.screen.hit(point) is element:
                return point
        return None

    def point(self, x: float, y: float) -> Point:
        width, height = self.screen.size
        return Point(round(x * 1000 / width, 2), round(y * 1000 / height, 2))

    def swipe(self, direction: Direction, instruction: str) -> None:
        area = self.screen.scroll_area
        if area is None:
            raise _Lost
        along = {"up": (0.6, 0.8), "down": (0.2, 0.4), "left": (0.6, 0.8), "right": (0.2, 0.4)}[direction]
        lengthwise, across = self.dice.uniform(*along), self.dice.uniform(0.4, 0.6)
        share_x, share_y = (across, lengthwise) if direction in ("up", "down") else (lengthwise, across)
        point = self.point(area.x1 + (area.x2 - area.x1) * share_x, area.y1 + (area.y2 - area.y1) * share_y)
        self.act(Scroll(point=point, direction=direction), instruction, _list_element(area))


def _list_element(area: PixelBox) -> Element:
    return Element(Widget("list", "list", "List"), area, area)


TAPPING: dict[str, str] = {
    "switch": 'Tap the switch next to "{}".',
    "search": "Tap the search field.",
    "field": 'Tap the "{}" field.',
    "icon": "Tap the {} icon.",
    "tab": 'Tap the "{}" tab.',
    **dict.fromkeys(("button", "action", "fab"), 'Tap the "{}" button.'),
}


def tapping(element: Element) -> str:
    """The instruction for a person to tap ``element``."""
    return TAPPING.get(element.role, 'Tap "{}".').format(element.label)


BUTTONS: tuple[Button, ...] = ("BACK", "HOME", "ENTER")


def equivalents(phone: Phone, action: Action, target: Element | None) -> tuple[Action, ...]:
    """Actions of another kind or on another element that lead from ``phone`` to the same phone as ``action``.

    Only for taps, app launches and buttons: the row around a switch, the arrow that does what BACK does, the icon of an app.
    """
    if not isinstance(action, Click | Open | Press):
        return ()
    screen, after = phone.screen, phone.apply(action)
    candidates: list[Action] = [Press(button=button) for button in BUTTONS]
    if isinstance(action, Click) and target and target.role == "icon":
        candidates.append(Open(app=target.label))
    for element in screen.interactive:
        if element is target or element.shown < 0.6:
            continue
        centre = screen.unified(element.box).centre
        point = Point(round(centre.x, 2), round(centre.y, 2))
        if screen.hit(point) is element:
            candidates.append(Click(point=point))
    return tuple(other for other in candidates if other != action and phone.apply(other) == after)
