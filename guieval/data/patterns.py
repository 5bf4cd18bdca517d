"""Regular expressions from data, matched in linear time by RE2, so that no pattern can block a run.

RE2 has the syntax of Python's ``re`` without lookaround and backreferences, which cannot be matched in linear time; ``\\d``,
``\\w`` and ``\\s`` mean ASCII characters.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_MOST_MEMORY = 1 << 20
"""Bytes that a compiled pattern may take; a count such as ``a{1000}{1000}`` would take gigabytes."""
_HUGE_COUNT = re.compile(r"\{\d{0,9},?\d{4,}\}")


def pattern_problem(pattern: str) -> str | None:
    """Why a text is not a usable regular expression, as a clause; ``None`` if it is one."""
    compiled = _compiled(pattern)
    return f"{pattern!r:.80} is not a regular expression of RE2: {compiled}" if isinstance(compiled, str) else None


def matches_whole(pattern: str, text: str) -> bool:
    """Whether a pattern matches the whole text; an invalid pattern matches nothing."""
    compiled = _compiled(pattern)
    return not isinstance(compiled, str) and compiled.fullmatch(text.encode(errors="replace").decode()) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    if _HUGE_COUNT.search(pattern):  # RE2 reads it as plain characters
        return "a count is larger than 1000"
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        why = error.args[0] if error.args else error
        return f"{why.decode(errors='replace') if isinstance(why, bytes) else why:.80}"
