"""Thoughts that have to be closed: what is tried out within a thought is no answer.

For families whose authors say so; others tolerate a thought that is not closed (:func:`guieval.parsing.split_reasoning`).
"""

from __future__ import annotations

import re

from guieval.errors import ParseError
from guieval.parsing import split_reasoning

_END = re.compile(r"</(?:think\w*|thought)>", re.IGNORECASE)


def closed_thought(text: str, answer: str) -> tuple[str | None, str]:
    """The thought in front of the answer (``None`` without one), and the rest.

    As :func:`guieval.parsing.split_reasoning` with the same ``answer``, but a thought ends at an end tag only: where ``answer``
    occurs within the thought alone, all up to the last end tag is thought. Raises :class:`ParseError` without an end tag, since
    a reply that was cut off while the model still thought has no answer.
    """
    for begins in (answer, ""):
        thought, rest = split_reasoning(text, begins)
        end = len(text) - len(rest)
        if thought is None or _END.fullmatch(text, max(0, text.rfind("</", 0, end)), end):
            return thought, rest
    raise ParseError(f"the thought is never closed, so the reply holds no answer: it ends {text.strip()[-60:]!r}")
