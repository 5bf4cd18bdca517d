"""Counts words that house style avoids in the prose of the code: docstrings, comments and messages, per 1,000 words of prose.

    python -m perf.words                  # the table; exit code 1 if a word is above its goal
    python -m perf.words where holds      # the sentences with these words, and their lines

Watched words have no goal.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent
FOLDERS = ("guieval", "benchmarks", "model_adapters")
GOALS: dict[str, float] = {"where": 1.0, "holds": 0.5, "beside": 0.1, "stands": 0.1, "lies": 0.1}
GOALS |= dict.fromkeys(("reply", "replies", "figures", "told"), 0.05)
"""The most occurrences in 1,000 words of prose."""
WATCHED = ("figure",)
"""Counted without a goal: the papers' figures and plots are called so."""
WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")


class Text(NamedTuple):
    """A docstring, a comment or a message, and its line."""

    path: Path
    line: int
    text: str

    @property
    def words(self) -> list[str]:
        return [word.lower() for word in WORD.findall(self.text)]


def prose(source: str, path: Path) -> Iterator[Text]:
    """Comments, and docstrings and other texts of at least four words."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(path, token.start[0], token.string.lstrip("# "))
    inside: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "0" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            text = node.value
        else:
            continue
        if len(text.split()) >= 4:
            yield Text(path, node.lineno, text)


def all_prose(root: Path = REPOSITORY) -> Iterator[Text]:
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            yield from prose(path.read_text(encoding="utf-8"), path.relative_to(root))


def rates(texts: Iterable[Text]) -> dict[str, float]:
    """Occurrences of every goal and watched word in 1,000 words."""
    counted = Counter(word for text in texts for word in text.words)
    return {word: 1000 * counted[word] / counted.total() for word in (*GOALS, *WATCHED)}


def main(words: list[str]) -> int:
    """Print the table, or the texts with ``words``; returns the exit code."""
    texts = list(all_prose())
    for text in texts:
        for sentence in re.split(r"(?<=[.;:])\s+|\n\n", text.text) if {*words} & {*text.words} else ():
            if {*words} & {word.lower() for word in WORD.findall(sentence)}:
                print(f"{text.path}:{text.line}: {' '.join(sentence.split())}")
    if words:
        return 0
    found = rates(texts)
    print(f"{sum(len(text.words) for text in texts):,} words of prose; occurrences in 1,000 words")
    for word, rate in found.items():
        goal = f"at most {GOALS[word]}" if word in GOALS else "no goal"
        print(f"  {word:8} {rate:5.2f}   {goal}")
    return int(any(found[word] > goal for word, goal in GOALS.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
