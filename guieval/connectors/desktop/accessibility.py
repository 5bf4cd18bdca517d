"""What the accessibility tree says of a desktop's screen: the boxes of its elements, for records of the expert.

Applications offer the tree (AT-SPI) on a bus that is started for records only, since it takes time and memory. The desktop
looks the same with it, as the bus of the session stays closed to applications.
"""

from __future__ import annotations

import json
from pathlib import Path

from guieval.actions import Boxes, Point
from guieval.connectors.desktop.session import DesktopSession
from guieval.errors import UsageError

_FILES = {
    "/usr/bin/dbus-daemon": "dbus",
    "/usr/libexec/at-spi-bus-launcher": "at-spi2-core",
    "/usr/lib/python3/dist-packages/gi/__init__.py": "python3-gi",
    "/usr/lib/*/girepository-1.0/Atspi-2.0.typelib": "gir1.2-atspi-2.0",
}
"""Files that have to be there, with their packages in Debian and Ubuntu."""
_ROLES = frozenset(
    (
        *("push button", "toggle button", "check box", "radio button", "menu", "menu item", "check menu item"),
        *("radio menu item", "text", "entry", "password text", "spin button", "combo box", "list item", "table cell"),
        *("tree item", "page tab", "icon", "slider", "link", "toggle switch", "paragraph", "table column header"),
    )
)
"""Roles of elements that an action can be meant for; others arrange or name these."""
_BUS = """export AT_SPI_BUS_ADDRESS
AT_SPI_BUS_ADDRESS=$(
  printf 'root:x:0:0::/:\\nuser:x:1000:1000::/home/user:/bin/bash\\n' > /etc/passwd  # the bus asks who starts it
  export DBUS_SESSION_BUS_ADDRESS=unix:path=/tmp/.bus
  dbus-daemon --session --fork --address=$DBUS_SESSION_BUS_ADDRESS > /dev/null
  dbus-send --print-reply=literal --dest=org.a11y.Bus /org/a11y/bus org.a11y.Bus.GetAddress | tr -d ' '
)
unset NO_AT_BRIDGE
"""
_READ = """
import json, sys
import gi
gi.require_version("Atspi", "2.0")
from gi.repository import Atspi
MOST, WIDEST = 4000, 200
Atspi.set_timeout(1000, 2000)
point, found = list(map(int, sys.argv[1:])), []
def look(node, depth):
    if len(found) >= MOST or depth > 60:
        return
    states = node.get_state_set()
    if depth > 1 and not states.contains(Atspi.StateType.SHOWING):
        return
    try:
        box = node.get_extents(Atspi.CoordType.SCREEN)
        found.append([node.get_role_name(), box.x, box.y, box.width, box.height])
    except Exception:
        pass
    inner = [node.get_child_at_index(number) for number in range(min(node.get_child_count(), WIDEST))]
    if states.contains(Atspi.StateType.MANAGES_DESCENDANTS) and point:
        inner.append(node.get_accessible_at_point(*point, Atspi.CoordType.SCREEN))
    for child in inner:
        if child is not None and child != node:
            look(child, depth + 1)
try:
    look(Atspi.get_desktop(0), 0)
finally:
    print(json.dumps(found))
"""


def require_accessibility() -> None:
    """Raise :class:`UsageError` if a package is missing that the accessibility tree needs."""
    missing = [package for file, package in _FILES.items() if not any(Path("/").glob(file.lstrip("/")))]
    if missing:
        raise UsageError(
            f"the expert's targets need packages that are not installed: {', '.join(missing)}; `make desktop` installs them"
        )


async def offer_tree(session: DesktopSession) -> None:
    """Let the applications that are started from now on offer their trees."""
    await session.begin(_BUS)


async def elements_shown(session: DesktopSession, point: Point | None) -> Boxes:
    """The boxes in [0, 1000] of what the applications show and an action can be meant for, each once.

    Of a table with more cells than can be read, the one at ``point`` is there. Empty if no application offers a tree.
    """
    width, height = session.size
    place = "" if point is None else f"{int(point.x * width / 1000)} {int(point.y * height / 1000)}"
    said = await session.run(f"timeout 20 /usr/bin/python3 - {place}", _READ.encode())
    try:
        found = json.loads(said)
    except ValueError:
        found = []
    boxes = {(x, y, x + w, y + h): None for role, x, y, w, h in found if role in _ROLES and w > 0 and h > 0}
    return Boxes((1000 * a / width, 1000 * b / height, 1000 * c / width, 1000 * d / height) for a, b, c, d in boxes)


def smallest_at(boxes: Boxes, point: Point) -> Boxes:
    """The smallest of the boxes that contain a point; none if no box does."""
    x1, y1, x2, y2 = boxes.array.T
    around = boxes.array[(x1 <= point.x) & (point.x <= x2) & (y1 <= point.y) & (point.y <= y2)]
    areas = (around[:, 2] - around[:, 0]) * (around[:, 3] - around[:, 1])
    return Boxes(around[areas.argsort(kind="stable")[:1]])
