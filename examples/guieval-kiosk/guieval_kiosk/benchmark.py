"""``kiosk``: buying a ticket at a machine. Three screens an episode, drawn when they are first needed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from guieval import ABCBenchmark, Action, ActionSpace, Boxes, Click, Episode, EpisodeRef, Point, StepTaskModel, Stop
from guieval.steps import EpisodeKey

SIZE = (480, 640)
CITIES = ("Bergen", "Ghent", "Lyon", "Porto", "Turin")
FARES = ("Single", "Return")


class Kiosk(ABCBenchmark):
    """A city, a fare, and the end; an episode for each pair."""

    name = "kiosk"
    title = "Kiosk (example of a plug-in)"
    source = "drawn by guieval-kiosk"
    licence = "Apache-2.0"
    dataset = "kiosk"
    protocol = "kiosk-strict"
    action_space = ActionSpace(frozenset({"CLICK", "STOP"}), buttons=frozenset(), statuses=frozenset({"finish"}))
    needs_data = False

    def index(self) -> Sequence[EpisodeRef]:
        pairs = [(city, fare) for city in CITIES for fare in FARES]
        return [
            EpisodeRef(EpisodeKey(self.name, "", f"{city}-{fare}".lower()), 3, pair) for pair in pairs for city, fare in [pair]
        ]

    def load(self, ref: EpisodeRef) -> Episode:
        city, fare = ref.locator
        screens = ((CITIES, city), (FARES, fare), (("Thank you",), None))
        return Episode(steps=tuple(self._step(ref, index, *screen) for index, screen in enumerate(screens)))

    def _step(self, ref: EpisodeRef, index: int, labels: Sequence[str], target: str | None) -> StepTaskModel:
        screenshot = f"{ref.key.episode_id.split('-')[0] if index else 'start'}-{index}.png"
        path = self.root / screenshot
        if not path.exists():
            draw(path, labels)
        action: Action = Stop() if target is None else Click(point=centre(labels.index(target)))
        return StepTaskModel(
            benchmark=self.name,
            dataset=self.dataset,
            episode_id=ref.key.episode_id,
            step_index=index,
            episode_length=ref.length,
            instruction="Buy a {1} ticket to {0}".format(*ref.locator),
            screenshot=screenshot,
            screenshot_size=SIZE,
            action=action,
            targets=Boxes() if target is None else Boxes([button(labels.index(target))]),
        )

    @classmethod
    def write_example(cls, folder: Path, *, episodes: int = 2, seed: int = 0) -> None:
        """Draw all screens; there is nothing else to write."""
        for _ in cls(folder):
            pass


def button(place: int) -> tuple[float, float, float, float]:
    """The box of the button at a place from the top, in [0, 1000]."""
    return 100.0, 100.0 + 160.0 * place, 900.0, 220.0 + 160.0 * place


def centre(place: int) -> Point:
    left, top, right, bottom = button(place)
    return Point((left + right) / 2, (top + bottom) / 2)


def draw(path: Path, labels: Sequence[str]) -> None:
    """Write one screen as PNG, with a button for each label."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", SIZE, "white")
    canvas: Any = ImageDraw.Draw(image)
    for place, label in enumerate(labels):
        left, top, right, bottom = (value * SIZE[axis % 2] / 1000 for axis, value in enumerate(button(place)))
        canvas.rounded_rectangle((left, top, right, bottom), radius=12, fill="#dde6f3", outline="#35507a", width=2)
        canvas.text(((left + right) / 2, (top + bottom) / 2), label, fill="black", anchor="mm", font_size=28)
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)
