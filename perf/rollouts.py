"""How large a compact store of rollouts is, and how fast: python -m perf.rollouts REPLIES.jsonl [--steps N] [--words SHARE].

The paper's size is 3,438 steps, 8 rounds of 64 samples. REPLIES has a ``raw_response`` a line, replies to one step next to each
other. A sample is one of six neighbouring replies with a share of its words replaced by others of the file, so hardly two are
the same; its action is a click whose numbers vary as well. With fewer steps, sizes are scaled up to the paper's.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from guieval.actions import Boxes, Click, Point
from guieval.journal import RunFolder
from guieval.journal.lines import write_line
from guieval.steps import Sample, StepOutcome, StepRecord, StepTaskModel, Usage
from guieval.studies.decisions.executions import pooled

STEPS, ROUNDS, SAMPLES = 3438, 8, 64
POOL = 6
TAGS = {"think", "action", "conclusion", "Thought", "Action"}
BOXES = 30
_WORD = re.compile(r"[A-Za-z']{3,}")
_SIZE = (1080, 2400)


def step(index: int, rng: random.Random) -> StepTaskModel:
    """A step with as many boxes as a screen has, whose coordinates have all their digits."""
    boxes = []
    for _ in range(BOXES):
        x, y, w, h = rng.randrange(900), rng.randrange(2200), rng.randrange(20, 180), rng.randrange(20, 200)
        boxes.append([1000 * x / 1080, 1000 * y / 2400, 1000 * (x + w) / 1080, 1000 * (y + h) / 2400])
    return StepTaskModel(
        benchmark="androidcontrol",
        dataset="androidcontrol",
        episode_id=str(index),
        step_index=0,
        episode_length=1,
        instruction="Open the Zoho Meet app, view the scheduled meetings, and join the one that begins next.",
        low_level_instruction="Click on the meeting at the top of the list.",
        screenshot=f"{index}/0.png",
        screenshot_size=_SIZE,
        action=Click(point=Point(500.0, 500.0)),
        elements=Boxes(boxes),
    )


class Sampler:
    """Draws samples to a step from the replies of a file."""

    def __init__(self, replies: list[str], share: float) -> None:
        self._replies = replies
        self._share = share
        self._words = [word for reply in replies for word in _WORD.findall(reply)]

    def pool(self, rng: random.Random) -> list[str]:
        at = rng.randrange(len(self._replies) - POOL + 1)
        return self._replies[at : at + POOL]

    def _other(self, word: str, rng: random.Random) -> str:
        return rng.choice(self._words) if word not in TAGS and rng.random() < self._share else word

    def sample(self, pool: list[str], rng: random.Random) -> Sample:
        text = rng.choice(pool)
        text = _WORD.sub(lambda match: self._other(match[0], rng), text)
        text = re.sub(r"\b\d+\b", lambda match: str(max(0, round(int(match[0]) + rng.gauss(0, 6)))), text)
        x, y = (1000 * round(rng.gauss(size / 2, size / 150)) / size for size in _SIZE)
        return Sample(
            raw_response=text,
            thought=_tagged(text, "think"),
            conclusion=_tagged(text, "conclusion"),
            action=Click(point=Point(x, y)),
            outcome=StepOutcome(
                verdict="right", type_match=True, exact_match=True, distance=((x - 500) ** 2 + (y - 500) ** 2) ** 0.5
            ),
            usage=Usage(prompt_tokens=3120, completion_tokens=len(text) // 4),
            finish_reason="stop",
            seconds=round(rng.lognormvariate(1.0, 0.4), 4),
        )


def _tagged(text: str, tag: str) -> str | None:
    found = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    return found[1].strip() if found else None


def measured(name: str, steps: int, sample: Callable[[list[str], random.Random], Sample], sampler: Sampler) -> None:
    """Write a store, read it back, and print what both cost."""
    plain = packed = characters = 0
    packing = 0.0
    with tempfile.TemporaryDirectory() as folder:
        rounds = [Path(folder) / str(number) for number in range(ROUNDS)]
        streams = []
        for each in rounds:
            each.mkdir()
            streams.append((each / "steps.packed").open("wb"))
        for index in range(steps):
            rng = random.Random(index)
            task, pool = step(index, rng), sampler.pool(rng)
            for stream in streams:
                record = StepRecord(task=task, samples=tuple(sample(pool, rng) for _ in range(SAMPLES)))
                line = record.model_dump_json().encode() + b"\n"
                started = time.perf_counter()
                small = write_line(record, compact=True)
                packing += time.perf_counter() - started
                stream.write(small)
                plain, packed = plain + len(line), packed + len(small)
                characters += sum(len(each.raw_response or "") for each in record.samples)
        for stream in streams:
            stream.close()
        started = time.perf_counter()
        journals = [RunFolder(each).records for each in rounds]
        places = [{key: offset for offset, (key, _) in each.outline()} for each in journals]
        naming = time.perf_counter() - started
        started = time.perf_counter()
        for key in places[0]:
            pooled([each.at(where[key]) for each, where in zip(journals, places, strict=True)])
        reading = time.perf_counter() - started
    records, executions = steps * ROUNDS, steps * ROUNDS * SAMPLES
    up = STEPS / steps
    print(f"{name}: {characters / executions:.0f} characters a reply")
    print(
        f"  plain {plain * up / 1e6:,.0f} MB, packed {packed * up / 1e6:,.1f} MB ({packed / executions:.1f} bytes an execution)"
    )
    print(
        f"  packing {1e3 * packing / records:.1f} ms a record ({packing * up:.0f} s in all), "
        f"index {naming * up:.1f} s, all executions read and judged {reading * up:.0f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("replies", type=Path)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--words", type=float, default=0.1)
    parser.add_argument("--longest", action="store_true", help="only replies of at least 400 characters")
    given = parser.parse_args()
    lines = given.replies.read_text(encoding="utf-8").splitlines()
    replies = [json.loads(line)["raw_response"] for line in lines]
    replies = [reply for reply in replies if not given.longest or len(reply) >= 400]
    sampler = Sampler(replies, given.words)
    print(f"{STEPS:,} steps x {ROUNDS} rounds x {SAMPLES} samples, from {given.steps:,} steps")
    measured(f"replies that vary ({given.words:.0%} of the words)", given.steps, sampler.sample, sampler)
    fixed = Sampler(replies, 0.0)
    measured("the same words, other numbers", given.steps, lambda pool, rng: fixed.sample(pool[:1], rng), fixed)


if __name__ == "__main__":
    main()
