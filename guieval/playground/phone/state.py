"""The simulated phone's state: values only.

Its changes are in :mod:`guieval.playground.phone.transitions`, its screens in :mod:`guieval.playground.phone.apps`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Concatenate, Generic, Literal, ParamSpec, TypeAlias, TypeVar

from guieval.actions import StopStatus

Size: TypeAlias = tuple[int, int]
Colour: TypeAlias = tuple[int, int, int]
P = ParamSpec("P")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Style:
    """The look of a phone. ``rows`` and ``text`` scale row heights and text, ``margin`` is in dp."""

    dark: bool
    accent: Colour
    wallpaper: tuple[Colour, Colour]
    rows: float
    text: float
    margin: int
    round_avatars: bool
    tabs_on_top: bool


@dataclass(frozen=True)
class Item:
    """One record of an app: a note, a contact, a setting, a product, a conversation ...

    ``lines`` are a conversation's messages, each beginning with ``<`` (received) or ``>`` (sent).
    """

    key: str
    title: str
    detail: str = ""
    body: str = ""
    group: str = ""
    value: str = ""
    options: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True)
class View:
    """One page of an app: its name, its item, and the user's input on it. ``scroll`` is in dp."""

    app: str
    page: str = "main"
    item: str = ""
    tab: str = ""
    query: str = ""
    scroll: int = 0
    fields: tuple[tuple[str, str], ...] = ()
    focus: str = ""
    loading: bool = False

    def text(self, name: str) -> str:
        return dict(self.fields).get(name, "")

    def with_text(self, name: str, text: str) -> View:
        return replace(self, fields=tuple({**dict(self.fields), name: text}.items()))


@dataclass(frozen=True)
class Bound(Generic[Result]):
    """A function of the phone's state that has its other arguments. Equal if the function and the arguments are equal."""

    function: Callable[..., Result]
    arguments: tuple[object, ...]

    def __call__(self, state: State) -> Result:
        return self.function(state, *self.arguments)


def bind(function: Callable[Concatenate[State, P], Result], *arguments: P.args, **named: P.kwargs) -> Bound[Result]:
    """``function`` with its arguments after the state, which are all given by position."""
    assert not named
    return Bound(function, arguments)


Effect: TypeAlias = "Bound[State]"
Effects: TypeAlias = tuple[Effect, ...]


@dataclass(frozen=True)
class DialogChoice:
    """One answer to a dialog or entry of a menu; ``chosen`` marks the current one in a list of options."""

    label: str
    effects: Effects
    chosen: bool = False


@dataclass(frozen=True)
class Modal:
    """Something modal over the page: a dialog with buttons, a list of options, or a menu from the screen's lower edge."""

    kind: Literal["dialog", "options", "sheet"]
    title: str
    choices: tuple[DialogChoice, ...]
    text: str = ""


@dataclass(frozen=True)
class State:
    """Everything about the phone. ``stack`` has the pages of the app in front, empty on the home screen.

    ``slow`` names what needs a ``WAIT`` (``APP:launch``, ``APP:search``, ``APP:page``). ``popups`` are shown once, when their
    app is launched. ``made`` counts the items created by the user, whose keys contain it.
    """

    size: Size
    style: Style
    clock: str
    date: str
    home: tuple[tuple[str, ...], ...]
    dock: tuple[str, ...]
    data: Mapping[str, tuple[Item, ...]] = field(hash=False)
    slow: frozenset[str] = frozenset()
    popups: tuple[tuple[str, Modal], ...] = ()
    stack: tuple[View, ...] = ()
    home_page: int = 0
    overlay: Modal | None = None
    toast: str = ""
    made: int = 0
    stopped: StopStatus | None = None

    @property
    def apps(self) -> tuple[str, ...]:
        return tuple(app for page in self.home for app in page) + self.dock

    @property
    def view(self) -> View | None:
        """The page in front, ``None`` on the home screen."""
        return self.stack[-1] if self.stack else None

    def items(self, collection: str) -> tuple[Item, ...]:
        return self.data[collection]

    def item(self, collection: str, key: str) -> Item:
        """One item; ``KeyError`` if it does not exist (any more)."""
        for item in self.data[collection]:
            if item.key == key:
                return item
        raise KeyError(f"{collection}/{key}")

    def with_items(self, collection: str, items: tuple[Item, ...]) -> State:
        return replace(self, data={**self.data, collection: items})

    def with_item(self, collection: str, changed: Item) -> State:
        """The state after the item with the key of ``changed`` was replaced by it."""
        items = tuple(changed if item.key == changed.key else item for item in self.items(collection))
        return self.with_items(collection, items)

    def with_view(self, view: View) -> State:
        return replace(self, stack=(*self.stack[:-1], view))
