"""Benchmarks and episodes as HTML for a notebook. Every name and text of a data set is escaped."""

from __future__ import annotations

import html
import io
from base64 import b64encode
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from guieval.data.benchmark import ABCBenchmark
from guieval.data.display.marks import step_overlay
from guieval.data.doctor.counts import counted
from guieval.data.screenshots import read_picture
from guieval.errors import GuievalError, ScreenshotError, harmless
from guieval.steps import Episode, StepTaskModel

if TYPE_CHECKING:
    from PIL.Image import Image

THUMBNAIL = (180, 240)
MOST_THUMBNAILS, MOST_EPISODES = 24, 3
"""Steps of an episode, and episodes of a benchmark, that are shown."""
_TEXT_LIMIT = 4000
_FIGURE = "margin:0;width:180px;font-size:12px;overflow-wrap:anywhere"
_ROW = "display:flex;flex-wrap:wrap;gap:10px;margin:6px 0 14px"


def escaped(text: object) -> str:
    """Text that a page shows as it is: it holds no markup and does not turn the text around it."""
    shown = str(text)
    cut = f"{shown[:_TEXT_LIMIT]} [...]" if len(shown) > _TEXT_LIMIT else shown
    return f"<bdi>{html.escape(harmless(cut))}</bdi>"


def picture(image: Image) -> str:
    """An image within the page."""
    buffer = io.BytesIO()
    image.save(buffer, format="JPEG", quality=88)
    data = b64encode(buffer.getvalue()).decode()
    return f'<img alt="" style="max-width:100%;border:1px solid #d5d9df" src="data:image/jpeg;base64,{data}">'


def definitions(rows: Iterable[tuple[str, object]]) -> str:
    """A table of names and values, without empty values."""
    cells = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{escaped(name)}</th>'
        f'<td style="text-align:left;white-space:pre-wrap;overflow-wrap:anywhere">{escaped(value)}</td></tr>'
        for name, value in rows
        if value not in (None, "")
    )
    return f"<table>{cells}</table>"


def benchmark_html(benchmark: ABCBenchmark) -> str:
    """The attributes and counts of a benchmark, and its first episodes."""
    rows: list[tuple[str, object]] = [
        ("name", benchmark.name),
        ("paper", benchmark.paper),
        ("licence", benchmark.licence),
        ("setting", benchmark.setting),
        ("protocol", benchmark.protocol),
        ("data", benchmark.root),
    ]
    title = f"<h3>{escaped(benchmark.title)}</h3>"
    try:
        refs = benchmark.index()
        rows += [("episodes", f"{len(refs):,}"), ("steps", f"{sum(ref.length for ref in refs):,}")]
        shown = [benchmark.load(ref).located(benchmark.root) for ref in islice(refs, MOST_EPISODES)]
    except GuievalError as error:
        return f"<div>{title}{definitions([*rows, ('not readable', error)])}</div>"
    return f"<div>{title}{definitions(rows)}{''.join(map(episode_html, shown))}</div>"


def episode_html(episode: Episode) -> str:
    """The goal of an episode, and its steps as thumbnails on which the references are drawn."""
    steps = episode.steps
    figures = "".join(_figure(step, episode.root) for step in steps[:MOST_THUMBNAILS])
    more = f"<p>... and {counted(len(steps) - MOST_THUMBNAILS, 'more step')}</p>" if len(steps) > MOST_THUMBNAILS else ""
    hint = "" if episode.root else "<p>Screenshots are shown for episodes that come from benchmark.episode(...).</p>"
    head = f"<p><b>{escaped(episode.key)}</b>, {counted(len(steps), 'step')}<br>{escaped(steps[0].instruction)}</p>"
    return f'<div>{head}<div style="{_ROW}">{figures}</div>{more}{hint}</div>'


def _figure(step: StepTaskModel, root: Path | None) -> str:
    shown, why = "", ""
    if root is not None:
        try:
            shown = picture(_thumbnail(step, root))
        except ScreenshotError as error:
            why = f"<br>{escaped(error)}"
    caption = f"<b>{step.step_index}</b> {escaped(reference_text(step))}{why}"
    if step.low_level_instruction:
        caption += f"<br>{escaped(step.low_level_instruction)}"
    return f'<figure style="{_FIGURE}">{shown}<figcaption>{caption}</figcaption></figure>'


def reference_text(step: StepTaskModel) -> str:
    """The reference in one line."""
    values = {name: value for name, value in step.action if name not in ("type", "point", "duration")}
    return " ".join(map(str, (step.action.type, *values.values())))


def _thumbnail(step: StepTaskModel, root: Path) -> Image:
    image = read_picture(root, step.screenshot, step.screenshot_size, at_most=THUMBNAIL)
    return step_overlay(image.size, step, boxes=False, unit=0.8).over(image)
