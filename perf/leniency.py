"""How much each published click rule forgives on AndroidControl: clicks at random, and clicks beside the labelled place.

Recomputes a table that was measured once on the same labels (the 5,083 clicks and long presses of the 8,444 test steps, with
UI-S1's candidate boxes; every screen taken for 1080 x 2400 px) and says where it comes out alike. A random click falls anywhere
on the screen; a jittered one is the label plus normal noise of so many pixels on either axis, moved to the border where it
leaves the screen; at the upper and left border UI-R1's protocol takes it for missing, which the table did not. Rules are those
of the named protocols. Neither kind of rule is the strict one: a distance forgives near misses, candidate boxes forgive wrong
places on screens with large containers.

    python -m perf.leniency            # from the repository's root: half a minute; needs the annotations (GUIEVAL_SHARED_DATA)
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from guieval.actions import Boxes, Click, LongPress, Point
from guieval.evaluation import ClickRule, get_protocol
from guieval.registry import load_benchmark

WIDTH, HEIGHT = SCREEN = (1080, 2400)
CONDITIONS: tuple[float | None, ...] = (None, 60.0, 120.0, 240.0)
"""The standard deviations of the noise in pixels; ``None`` is a click anywhere."""
TOLERANCE = 4.0
"""Up to so many standard errors, and the table's rounding, two measurements are the same."""
ROUNDING = 0.0005

_SMALLEST_OR_NEAR = ClickRule(inside="target-element", enlarge=1.2, fallback=0.04)


@dataclass(frozen=True)
class Row:
    """A row of the published table: shares in [0, 1] in the order of :data:`CONDITIONS`, and whose rules it is about."""

    title: str
    protocols: tuple[str, ...]
    published: tuple[float, float, float, float]

    def rules(self) -> list[tuple[str, ClickRule]]:
        """The click rules of the named protocols on AndroidControl; where there is none, the rule that the title says."""
        named = [(name, get_protocol(name).rules_for("androidcontrol").click) for name in self.protocols]
        return named or [("(no protocol)", _SMALLEST_OR_NEAR)]


TABLE = (
    Row("151 px circle", ("ui-r1",), (0.027, 0.956, 0.572, 0.209)),
    Row("smallest box, no slack", ("uground-ac",), (0.055, 0.663, 0.380, 0.189)),
    Row("0.14 of the screen", ("osatlas", "gui-r1"), (0.056, 0.983, 0.777, 0.405)),
    Row("smallest box x1.2 or 0.04", (), (0.069, 0.793, 0.476, 0.249)),
    Row("368 px circle", ("os-genesis",), (0.135, 0.997, 0.989, 0.759)),
    Row("any box x1.2 or 0.04", ("qwen-gist", "ui-s1-sop"), (0.226, 0.841, 0.590, 0.398)),
    Row("any box x1.2 or 0.04 of the longer side", ("infigui-r1",), (0.227, 0.879, 0.612, 0.406)),
)


class Target(NamedTuple):
    """A labelled place and the elements published for it, in thousandths of the 1080 x 2400 screen that is assumed."""

    point: Point
    elements: Boxes


class Cell(NamedTuple):
    """A share found, out of ``judged`` clicks, beside the published one, which is taken for one click a label."""

    found: float
    judged: int
    published: float
    labels: int

    @property
    def standard_error(self) -> float:
        """Of the difference of the two shares, as if every click were drawn independently."""
        spread = self.published * (1 - self.published)
        return math.sqrt(spread / self.judged + spread / self.labels)

    @property
    def agrees(self) -> bool:
        """Whether the two are the same measurement."""
        return abs(self.found - self.published) <= TOLERANCE * self.standard_error + ROUNDING


def read_targets(folder: Path) -> list[Target]:
    """Every click and long press of UI-S1's test file in ``folder``."""
    benchmark = load_benchmark("androidcontrol", folder)
    targets = []
    for ref in benchmark.index():
        for step in benchmark.load(ref).steps:
            if isinstance(step.action, Click | LongPress):
                # The loader knows which screens are larger; the table took the same pixels for places on a smaller one.
                x, y = (side / assumed for side, assumed in zip(step.screenshot_size, SCREEN, strict=True))
                point = step.action.point
                targets.append(Target(Point(point.x * x, point.y * y), Boxes(step.elements.array * [x, y, x, y])))
    return targets


def draw(targets: Sequence[Target], deviation: float | None, dice: np.random.Generator) -> list[Point]:
    """One click for each target, in thousandths of the screen."""
    if deviation is None:
        places = dice.uniform(0.0, 1000.0, (len(targets), 2))
    else:
        noise = dice.normal(0.0, deviation, (len(targets), 2)) * 1000.0 / SCREEN
        places = np.clip(np.array([target.point for target in targets]) + noise, 0.0, 1000.0)
    return [Point(x, y) for x, y in places.tolist()]


def accepted(rule: ClickRule, targets: Sequence[Target], clicks: Sequence[Point]) -> int:
    """How many of the clicks the rule takes for hits."""
    return sum(
        rule.judge(Boxes(), target.elements, target.point, click, screen=SCREEN).exact_match
        for target, click in zip(targets, clicks, strict=True)
    )


def measure(targets: Sequence[Target], draws: int, seed: int) -> list[tuple[Row, str, list[Cell]]]:
    """Every row and each of its protocols, judged on the same ``draws`` clicks a label and condition."""
    lines = [(row, name, rule) for row in TABLE for name, rule in row.rules()]
    hits = np.zeros((len(lines), len(CONDITIONS)), dtype=np.int64)
    dice = np.random.default_rng(seed)
    for _ in range(draws):
        for column, deviation in enumerate(CONDITIONS):
            clicks = draw(targets, deviation, dice)
            hits[:, column] += [accepted(rule, targets, clicks) for _, _, rule in lines]
    judged = draws * len(targets)
    return [
        (
            row,
            name,
            [Cell(n / judged, judged, share, len(targets)) for n, share in zip(counts, row.published, strict=True)],
        )
        for (row, name, _), counts in zip(lines, hits.tolist(), strict=True)
    ]


def print_table(folder: Path, draws: int = 10, seed: int = 0) -> None:
    targets = read_targets(folder)
    print(f"{len(targets):,} labelled places, {draws} clicks each; found / published (standard error of the difference), in %")
    for row, name, cells in measure(targets, draws, seed):
        shown = [f"{c.found:5.1%} / {c.published:5.1%} ({c.standard_error:.1%})".replace("%", "") for c in cells]
        message = "agrees" if all(cell.agrees for cell in cells) else "DIFFERS"
        print(f"  {row.title:40} {name:14} {'   '.join(shown)}   {message}")


if __name__ == "__main__":
    recorded = Path(os.environ.get("GUIEVAL_SHARED_DATA", Path(__file__).resolve().parent.parent.parent / "shared" / "data"))
    columns = ["anywhere" if each is None else f"noise {each:g} px" for each in CONDITIONS]
    print(f"clicks accepted: {', '.join(columns)}")
    print_table(recorded / "ui_s1")
