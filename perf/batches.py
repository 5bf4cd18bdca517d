"""Requests a second of engine transformers: in batches by length, in batches in order of arrival, and one at a time.

A tiny random Qwen2.5-VL answers steps with one to five screenshots, 16 tokens each. The three take turns in one process, each
round in another order, and each ratio is to one request at a time of the same round, so that the load of the machine counts
little. Responses must be equal, or it fails.

    python perf/batches.py             # in the environment of `make test-train`, which is set up if it is missing
    python perf/batches.py --rounds 9 --cache static
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from guieval.settings import Cache

ROOT = Path(__file__).resolve().parent.parent
SIZES = ((360, 576), (400, 900), (540, 1200))
"""Screens of the three phones whose steps are mixed."""
MODEL = "ui-tars-7b-sft"


def requests(folder: Path) -> Iterator[Any]:
    """The steps of an episode on each phone, one phone's after another's."""
    from guieval.data.screenshots import read_screenshot
    from guieval.engines import request_id
    from guieval.history import reference_history
    from guieval.models import Request
    from guieval.registry import load_benchmark, load_model

    model = load_model(MODEL)
    for width, height in SIZES:
        place = folder / f"{width}x{height}"
        (episode,) = load_benchmark("demo", place, episodes=1, seed=4, width=width, height=height)
        for number, task in enumerate(episode.steps):
            prepared = model.prepare_input(task, reference_history(episode.steps[:number]))
            shown = [(image.task, image.resize) for image in prepared.images]
            images = [read_screenshot(place, each.screenshot, each.screenshot_size, resize) for each, resize in shown]
            sampling: dict[str, Any] = {"temperature": 0, "max_tokens": 16, "ignore_eos": True}
            yield Request(prepared, tuple(images), sampling, f"{width}-{request_id(task.key, 0)}", task)


def measure(weights: Path, asked: Sequence[Any], rounds: int, batch: int, cache: Cache) -> None:
    """Print the rates, as ratios to one request at a time."""
    from guieval.engines.in_process import transformers
    from guieval.engines.in_process.batches import PromptRow, alike
    from guieval.engines.in_process.checkpoint import Checkpoint
    from guieval.registry import load_model

    def by_arrival(waiting: Sequence[PromptRow], most: int) -> list[int]:
        return list(range(len(waiting)))[:most]

    ways: dict[str, tuple[int, Any]] = {
        "one at a time": (1, alike),
        "in order of arrival": (batch, by_arrival),
        "by length": (batch, alike),
    }

    async def answered(size: int) -> tuple[list[str], float]:
        checkpoint = Checkpoint(
            load_model(MODEL).config, path=str(weights), arguments={"dtype": "float32"}, batch_size=size, cache=cache
        )
        engine = transformers.transformers_engine(checkpoint)
        await engine.load()
        began = time.perf_counter()
        replies = await asyncio.gather(*map(engine.generate, asked))
        seconds = time.perf_counter() - began
        await engine.close()
        return [reply.text for reply in replies], len(asked) / seconds

    rates: dict[str, list[float]] = {name: [] for name in ways}
    texts: list[list[str]] = []
    for turn in range(rounds + 1):  # the first round warms up
        names = list(ways)
        for name in names[turn % 3 :] + names[: turn % 3]:
            size, transformers.alike = ways[name]  # type: ignore[attr-defined]
            found, rate = asyncio.run(answered(size))
            texts.append(found)
            rates[name] += [rate] if turn else []
    if any(found != texts[0] for found in texts):
        sys.exit("the responses differ")
    print(f"{len(asked)} requests of 1 to 5 screenshots, batches of up to {batch}, cache {cache}; responses equal")
    for name, measured in rates.items():
        ratios = [one / base for one, base in zip(measured, rates["one at a time"], strict=True)]
        spread = f"{statistics.median(ratios):5.2f} x one at a time ({min(ratios):.2f} to {max(ratios):.2f} in {rounds} rounds)"
        print(f"  {name:20} {statistics.median(measured):6.2f} requests/s  {spread}")


def main() -> None:
    """Measure in the environment that has transformers."""
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--cache", choices=["dynamic", "static"], default="dynamic")
    given = parser.parse_args()
    try:
        import transformers  # noqa: F401
    except ImportError:
        from tests.environment import folder, set_up

        python = str(set_up("training", folder("training")))
        sys.exit(subprocess.run([python, __file__, *sys.argv[1:]], check=False).returncode)
    from tests.vllm.tiny_model import write_tiny_model

    with tempfile.TemporaryDirectory(prefix="guieval-batches-") as work:
        weights = Path(work, "tiny")
        write_tiny_model(weights)
        measure(weights, list(requests(Path(work, "screens"))), given.rounds, given.batch, given.cache)


if __name__ == "__main__":
    main()
