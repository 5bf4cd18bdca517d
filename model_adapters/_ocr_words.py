"""The OCR baseline's understanding of a task's words: which cues they hold, in what order, and how well a text fits them.

Plain rules over English phrases, the same for every benchmark. What is done about a cue is in :mod:`._ocr_agent`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from guieval.actions import DIRECTIONS, OPPOSITE, Action, Button, Direction, Open, Point, Press, Scroll

CueKind: TypeAlias = Literal["do", "type", "tap", "hold", "switch", "maybe"]


@dataclass(frozen=True)
class Cue:
    """One thing the task asks for: an action it names outright (``do``), a text to write, or one to find and touch.

    ``maybe`` is a clause's own verb ("pin", "share") or something typed: worth a tap if it is on the screen, but not
    a search. ``field`` is what the task calls the place to type into, if anything.
    """

    kind: CueKind
    text: str
    action: Action | None = None
    field: str = ""


STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a an the my your me i to in into of for on off at by with from and or then is are this that it its all be please
        app application show display view check open go goto see look find choose select click tap press touch hit switch turn
        toggle set change adjust enable disable make use launch start visit navigate page screen button icon item row entry""",
    )
)
"""Words of a task that describe actions and not texts on the screen."""
SYNONYMS = tuple(
    frozenset(group.split())
    for group in (
        "add create new compose plus +",
        "delete remove trash erase",
        "search find q",
        "settings preferences",
        "save done",
        "back return previous ← <",
        "more options menu ... ··· ⋮",
        "picture photo image",
        "close dismiss x ×",
    )
)
"""Words (and what OCR reads in place of the usual glyphs) that user interfaces use for each other."""
BUTTONS: dict[str, Button] = {"back": "BACK", "previous": "BACK", "home": "HOME", "enter": "ENTER"}
QUOTED = re.compile(r"[\"“]([^\"”]+)[\"”]|(?<!\w)['‘]([^'’]+(?:['’]\w[^'’]*)*)['’](?!\w)")
NAME = r"[A-Z][\w&+'-]*(?:\.\w+)*(?:\s+[A-Z0-9][\w&+'-]*)*"
APP = (
    re.compile(rf"\b(?:[Ii]n|[Oo]n|[Uu]sing|[Ww]ith|[Ff]rom|[Oo]pen|[Ll]aunch|[Ss]tart|[Tt]o)\s+(?:the\s+)?({NAME})\s+app\b"),
    re.compile(r"\b(?:in|on|using|with|from|open|launch|start|to)\s+(?:the\s+)?([\w'-]+(?:\s[\w'-]+)?)\s+app\b", re.I),
    re.compile(
        rf"^\W*(?:[Oo]pen|[Ll]aunch|[Ss]tart|[Ii]n|[Oo]n|[Uu]sing)\s+(?:the\s+)?({NAME})(?=\s*(?:[,.;:]|and\b|then\b|to\b|$))"
    ),
    re.compile(
        rf"(?<![Tt]ap )(?<!lick )(?<!ress )(?<!urn )\b(?:in|on|using|from)\s+(?:the\s+)?({NAME})(?=\W*$|,|\s+(?:and|then)\b)"
    ),
)
SPLIT = re.compile(r"[,;:.](?=\s|$)|\band\b|\bthen\b", re.I)
SEARCH = re.compile(r"\b(?:search|look for)\s+(?!field|bar|box|button|icon)(?:for\s+)?(?:the\s+|an?\s+)?(.+)", re.I)
WRITE = re.compile(r"\b(?:type|enter|write|input)\s+(?:in\s+)?(?:the text\s+)?(.+?)(?:\s+(?:in|into|as|on|to)\s+.*)?\s*$", re.I)
WRITING = re.compile(
    r"\b(?:types?|enter|write|input|saying|says?|send|reply|titled?|named?|called|rename|label(?:led)?|text|message|subject|body|"
    r"description|with (?:the|an?))\b",
    re.I,
)
SCROLL = re.compile(r"\b(scroll|swipe)\b\D*?\b(up|down|left|right)\b", re.I)
BUTTON = re.compile(r"\b(?:go|navigate|return|press|hit)\s+(?:the\s+|to\s+the\s+|to\s+)?(back|home|enter|previous)\b", re.I)
HOME_SCREEN = re.compile(r"\b(?:go|navigate|return|back)\b.*\bhome ?screen\b", re.I)
HOLD = re.compile(r"\blong[- ]?(?:press|tap|click)|\b(?:press and |touch and )?hold\b", re.I)
SWITCH = re.compile(
    r"\b(?:turn|switch)\s+(?:\S+\s+){0,4}?(?:on|off)\b|\b(?:toggle|enable|disable|activate|deactivate|allow|disallow)\b", re.I
)
SWITCH_WORDS = re.compile(r"\b(?:activate|deactivate|allow|disallow)\b", re.I)
CREATE = re.compile(r"^\W*(?:create|add|new|compose|make|write)\b", re.I)
DELETE = re.compile(r"\b(delete|remove)\b", re.I)
FIELD_TAPPED = re.compile(r"\b(?:field|box|bar|input)\b", re.I)


def _press(button: Button) -> Cue:
    return Cue("do", f"{button.lower()} button", Press(button=button))


ENTER = _press("ENTER")


def swipe(direction: Direction) -> Scroll:
    """A swipe from the middle of the screen."""
    return Scroll(point=Point(500.0, 500.0), direction=direction)


def words(text: str) -> list[str]:
    """The words of a text in lower case, with the glyphs that stand for buttons as words of their own."""
    return re.findall(r"[^\W_]+|\.\.\.|[+×←<⋮]|···", re.sub(r"['’]s\b", "", text.casefold()))


def key_words(text: str) -> tuple[str, ...]:
    """The words of a task that can be seen on a screen; all of its words when only filler is left."""
    every = words(text)
    return tuple(word for word in every if word not in STOP_WORDS) or tuple(every)


def _stem(word: str) -> str:
    for ending in ("ing", "es", "s", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _word_affinity(word: str, line: Sequence[str], joined: str) -> float:
    from rapidfuzz import fuzz

    if len(word) <= 2:
        return float(word in line)
    score = max((fuzz.ratio(word, other[: len(word)]) / 100 for other in line), default=0.0)
    # OCR drops spaces, so a word may stand within another; slightly less sure than a whole word
    if score < 1 and len(word) >= 4 and len(joined) >= len(word):
        score = max(score, 0.97 * fuzz.partial_ratio(word, joined) / 100)
    return score if score >= 0.8 else 0.0


def affinity(wanted: Sequence[str], text: str, precision: float = 0.4) -> float:
    """How well a text fits wanted words, in [0, 1]: the letter-weighted share of them it has, times a factor that falls
    to 1 - ``precision`` the more of the text is something else. Words are compared fuzzily, by stem and synonym.
    """
    line = words(text)
    total = sum(map(len, wanted))
    if not line or not total:
        return 0.0
    joined = " ".join(line)
    held = covered = 0.0
    for word in wanted:
        score, used = _word_affinity(_stem(word), line, joined), len(word)
        if score < 1:
            for group in SYNONYMS:
                same = [other for other in line if other in group] if word in group else []
                if same and score < 0.9:
                    score, used = 0.9, len(same[0])
        held += score * len(word)
        covered += score * used
    return held / total * (1 - precision + precision * min(1.0, covered / sum(map(len, line))))


def plan(task: str) -> tuple[Cue, ...]:
    """The cues of a task in the order a person would follow them: its app first, then clause by clause."""
    quotes: dict[str, str] = {}

    def mask(match: re.Match[str]) -> str:
        # a private-use character is neither a word nor a separator to any of the patterns
        mark = chr(0xE000 + len(quotes))
        quotes[mark] = match[1] or match[2]
        return mark

    text = QUOTED.sub(mask, task)
    cues: list[Cue] = []
    app = next((match for pattern in APP if (match := pattern.search(text))), None)
    if app:
        cues.append(Cue("do", app[1], Open(app=app[1])))
        text = f"{text[: app.start()]},{text[app.end() :]}"
    for clause in SPLIT.split(text):
        own = _clause(clause.strip(), quotes)
        if not own and SWITCH.search(clause) and cues:
            own = [Cue("switch", next(cue.text for cue in reversed(cues) if cue.action is None or cue is cues[0]))]
        cues += own
    return tuple(cues)


def _clause(clause: str, quotes: dict[str, str]) -> list[Cue]:
    quoted = [quotes[character] for character in clause if character in quotes]
    plain = "".join(character for character in clause if character not in quotes)

    def spoken(text: str) -> str:
        return "".join(quotes.get(character, character) for character in text).strip(" .!?")

    def without(pattern: re.Pattern[str]) -> list[str]:
        rest = " ".join(word for word in words(pattern.sub(" ", plain)) if word not in STOP_WORDS)
        return [rest] if rest else []

    if match := SEARCH.search(clause):
        query = quoted[0] if quoted else spoken(match[1])
        return [Cue("tap", "search"), Cue("type", query, field="search"), Cue("maybe", query), ENTER]
    if match := SCROLL.search(plain):
        named = next(direction for direction in DIRECTIONS if direction == match[2].lower())
        # swiping names the direction of the finger, scrolling that of the view, which is the opposite
        return [Cue("do", match[0], swipe(named if match[1].lower() == "swipe" else OPPOSITE[named]))]
    if HOME_SCREEN.search(plain):
        return [_press("HOME")]
    if match := BUTTON.search(plain):
        return [_press(BUTTONS[match[1].lower()])]
    if quoted and WRITING.search(plain):
        fields = [" ".join(words(part)[-2:]) for part in re.split("[\ue000-\uf8ff]", clause)]
        typed = [Cue("type", text, field=field) for text, field in zip(quoted, fields, strict=False)]
        if CREATE.match(plain):
            return [Cue("tap", "create"), *typed]
        who = [] if FIELD_TAPPED.search(plain) else without(WRITING)
        return [*(Cue("tap", text) for text in who), *typed]
    if match := WRITE.search(clause):
        return [Cue("type", spoken(match[1]))]
    if HOLD.search(plain):
        return [Cue("hold", text) for text in quoted or without(HOLD)]
    if SWITCH.search(plain):
        return [Cue("switch", text) for text in quoted or without(SWITCH_WORDS)]
    if match := DELETE.search(plain):
        return [*(Cue("tap", text) for text in quoted or without(DELETE)), Cue("tap", match[1].lower())]
    verb = next((word for word in words(plain)[:1] if word not in STOP_WORDS), None)
    return [*(Cue("tap", text) for text in quoted or without(SWITCH_WORDS)), *([Cue("maybe", verb)] if verb else [])]
