"""Characters of labels that cannot be seen or look like others.

Protocols compare texts as their sources do, so a response that looks equal to such a label may count as wrong
(:func:`guieval.evaluation.label_cost.cost`).
"""

from __future__ import annotations

import re
import unicodedata

from guieval.actions import Open, Type
from guieval.steps import StepTaskModel

_PLAIN = str.maketrans("\u2018\u2019\u201c\u201d\u2013\u2014\u2010\u2011\u2026\r", "''\"\"----.\n")
_JOINERS = "\u200c\u200d"
"""Invisible, but part of how words of some scripts and composed emoji are written."""
_CHINESE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
"""Scripts in whose texts curly quotes and long dashes are the usual ones."""
_SCRIPTS = re.compile(r"LATIN|CYRILLIC|GREEK")


def odd(text: str) -> str | None:
    """The first thing in a text that cannot be seen or looks like something else, in words; ``None`` if there is none."""
    chinese = _CHINESE.search(text) is not None
    for char in text:
        name = f"U+{ord(char):04X} ({unicodedata.name(char, 'without a name').lower()})"
        kind = unicodedata.category(char)
        if kind in ("Cf", "Cc", "Co") and char not in f"\n\t{_JOINERS}":
            return f"the invisible {name}"
        if kind in ("Zs", "Zl", "Zp") and char not in " \u3000":
            return f"the space {name}"
        if char in "\u2018\u2019\u201c\u201d\u2013\u2014\u2010\u2011" and not chinese:
            return f"the look-alike {name}"
        if kind in ("Nd", "Lu", "Ll") and unicodedata.normalize("NFKC", char) in _ASCII and char not in _ASCII:
            return f"the look-alike {name}"
    if unicodedata.normalize("NFC", text) != text:
        return "letters and accents apart (it is not in Unicode's form NFC)"
    for word in re.findall(r"[^\W\d_]+", text):
        scripts = {match[0] for char in word if (match := _SCRIPTS.match(unicodedata.name(char, "")))}
        if len(scripts) > 1:
            return f"letters of {' and '.join(sorted(script.title() for script in scripts))} in one word"
    return None


_ASCII = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


def plain(text: str) -> str:
    """A text as people and models type it: without what cannot be seen, and with the usual one of what looks alike."""
    seen = "".join(
        " " if unicodedata.category(char) in ("Zs", "Zl", "Zp") else char
        for char in text.replace("\r\n", "\n").translate(_PLAIN)
        if unicodedata.category(char) not in ("Cf", "Cc", "Co") or char in f"\n\t{_JOINERS}"
    )
    narrowed = ((char, unicodedata.normalize("NFKC", char)) for char in seen)
    return unicodedata.normalize("NFC", "".join(narrow if narrow in _ASCII else char for char, narrow in narrowed))


def label(step: StepTaskModel) -> str | None:
    """The text that a step's label types, or the app that it opens."""
    match step.action:
        case Type():
            return step.action.text
        case Open():
            return step.action.app
    return None
