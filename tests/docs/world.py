"""The reader's world: a folder with the runs, data and servers that the pages' commands name.

``DIR`` is an example of the release, as the benchmark's loader writes it, ``URL`` a scripted server that answers as the
command's model, and a name such as ``runs/NAME`` a run of the OCR baseline.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import guieval
from guieval.cli import GROUPS
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import benchmark_class, load_benchmark

PLACEHOLDERS = {
    "NAME": "qwen2.5-vl-7b",
    "EPISODE": "s0-0006",
    "M": "qwen2.5-vl-7b",
    "B": "demo",
    "RUN": "runs/NAME",
    "THINKING": "rollouts/OTHER",
    "INSTRUCT": "rollouts/OTHER",
    "episodes=500": "episodes=4",  # the server draws them all before it serves
}
ADDRESSES = ("URL", "OTHER", "http://127.0.0.1:8000/v1")
NAMED_FIRST = ("doctor", "data prepare", "data export", "data download")
"""Commands whose first argument is a benchmark."""
LIMIT = {"study rollout": "1", "study mix": "1", "run": "2"}
"""How many episodes a command takes that does not choose them itself."""
FEWER = {
    "study rollout": ["--rounds", "2", "--samples", "2"],
    "study mix": ["--levels", "2", "--means", "1"],
    "campaign": ["--set", "limit=1"],
}
"""What else makes a command small enough for a test."""


def make_runs(folder: Path) -> None:
    """The runs that pages assume: of the OCR baseline, of one that slips, and of judges that are given its thoughts."""
    made = folder / "runs"
    for name, model, options in (("NAME", "ocr-baseline", {}), ("OTHER", "ocr-errant", {"slip": 0.3})):
        guieval.run(model=model, bench="demo", out=made / name, limit=2, progress=False, options=options)
    out, sampling = folder / "rollouts" / "OTHER", {"temperature": 1.0}
    guieval.run(model="ocr-errant", bench="demo", out=out, limit=2, progress=False, samples=4, sampling=sampling)
    for name, like in (("A", "NAME"), ("B", "OTHER"), ("first", "NAME")):
        shutil.copytree(made / like, made / name)


class World:
    """One page's folder and servers; commands are carried out in it in their order."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.stack = stack
        self._servers: dict[tuple[str, str, str], MockServer] = {}
        self._examples: dict[str, Path] = {}
        self.listening: dict[str, str] = {}
        """Servers that the page itself has started: the address on the page, and where they really listen."""

    def words(self, words: Sequence[str]) -> list[str]:
        """A command's words with what stands for data, servers and names put in."""
        filled: list[str] = []
        name, first = command_of(words)
        bench = value_of(words, "--bench") or (first[0] if name in NAMED_FIRST and first else "androidcontrol")
        for previous, word in zip(["", *words], words, strict=False):
            filled.append(self._filled(previous, word, bench, words))
        fewer: list[str] = []
        if not {"--resume", "--pool"} & {*words}:
            fewer += FEWER.get(name, ())
            chosen = name not in LIMIT or {"--preset", "--sample-set", "--episodes", "--drawn-as"} & {*words}
            fewer += [] if chosen else ["--limit", LIMIT[name]]
            filled = without(filled, {*fewer[::2]} - {"--set"})
        return [*(each for word in filled for each in self._matching(word)), *fewer]

    def placed(self, text: str) -> str:
        """A file's text with the addresses at which the page's servers really listen."""
        for address, real in self.listening.items():
            text = text.replace(address, real)
        return text

    def _filled(self, previous: str, word: str, bench: str, words: Sequence[str]) -> str:
        if previous in ("--data", "--source") and word.isupper():
            return str(self._example(bench))
        if previous == "--base-url" and word in self.listening:
            return self.listening[word]
        if previous == "--base-url" and word in ADDRESSES:
            return self._server(words)
        return PLACEHOLDERS.get(word, word)

    def _matching(self, word: str) -> Iterator[str]:
        """What a shell makes of a pattern."""
        found = sorted(self.folder.glob(word)) if "*" in word else []
        yield from (str(path.relative_to(self.folder)) for path in found) if found else (word,)

    def _example(self, bench: str) -> Path:
        if bench not in self._examples:
            folder = self.folder / "data-of" / bench
            folder.mkdir(parents=True)
            benchmark_class(bench).write_example(folder)
            self._examples[bench] = folder
        return self._examples[bench]

    def _server(self, words: Sequence[str]) -> str:
        name, first = command_of(words)
        given = ["--model", first[0], "--bench", "demo-screens"] if name == "dev audit-engine" else words
        model = PLACEHOLDERS.get(name := value_of(given, "--model") or "ui-tars-7b", name)
        adapter = value_of(words, "--adapter") or ""
        bench = PLACEHOLDERS.get(name := value_of(given, "--bench") or "demo", name)
        key = (model, adapter, bench)
        if key not in self._servers:
            data = self._example(bench) if benchmark_class(bench).needs_data else None
            settings = MockSettings(
                model=model, adapter=adapter or None, policy="reference", accuracy=0.8, served_models=(model,), sees="right"
            )
            self._servers[key] = self.stack.enter_context(MockServer(settings, benchmark=load_benchmark(bench, data)))
        return self._servers[key].base_url


def command_of(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The name of a command, with its group, and the words after it; ``words`` begin with ``guieval``."""
    place = 3 if words[1] in GROUPS else 2
    return " ".join(words[1:place]), words[place:]


def value_of(words: Sequence[str], option: str) -> str | None:
    """The value that follows an option, the last one if it stands there twice."""
    found = [word for previous, word in pairwise(words) if previous == option]
    return found[-1] if found else None


def without(words: Sequence[str], options: Collection[str]) -> list[str]:
    """The words but for some options and their values."""
    return [word for before, word in zip(["", *words], words, strict=False) if not {before, word} & {*options}]
