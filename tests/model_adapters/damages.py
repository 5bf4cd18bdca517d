"""Ways in which models' responses depart from the published format, each as a change drawn with the dice of its row."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from random import Random

Damage = Callable[[Random, str], str | None]
"""The damaged text; the text itself or ``None`` where there is nothing of the kind to damage."""

_THOUGHT_END = re.compile(r"</(?:think\w*|thought|grounding_think)>\s*", re.IGNORECASE)
_THOUGHT_START = re.compile(r"<(?:think\w*|thought|grounding_think)>\s*", re.IGNORECASE)
_CLOSING = re.compile(r"</\w+>|<\|(?:end_of_box|box_end)\|>")
_OPENING = re.compile(r"<[A-Za-z_]\w*(?:=\w+)?>|<\|(?:begin_of_box|box_start)\|>")
_KEY = re.compile(r"[\"']?\b(\w+)\b[\"']?\s*(?==[\"'<(\[]|:)|<parameter=(\w+)>")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")
_PAIR = re.compile(r"([\[(]|<point>|point\d?:)(\d+(?:\.\d+)?)(,? ?)(\d+(?:\.\d+)?)")
_SYNONYMS = {
    **{"coordinate": "point", "coordinate2": "end_coordinate", "start_box": "box", "point": "coordinate", "box": "point"},
    **{"element": "position", "box_2d": "bbox_2d", "POINT": "point", "arguments": "parameters", "action": "action_type"},
    **{"action_type": "action", "content": "text", "text": "content", "value": "text", "TYPE": "text", "input_text": "text"},
    **{"name": "function", "direction": "dir", "start": "start_point", "app_name": "app", "message": "content", "x": "left"},
}
_WIDE = {",": "，", ":": "：", "(": "（", ")": "）", "[": "［", "]": "］"}


def _without(dice: Random, text: str, pattern: re.Pattern[str]) -> str | None:
    found = list(pattern.finditer(text))
    one = dice.choice(found) if found else None
    return one and text[: one.start()] + text[one.end() :]


def _answer(text: str) -> int:
    """Where the answer begins: after the thought, if there is one."""
    ends = list(_THOUGHT_END.finditer(text))
    labels = list(re.finditer(r"^(?:Action|actions|action|explain)\s?:", text, re.MULTILINE))
    return ends[-1].end() if ends else labels[-1].start() if labels else 0


def _in_answer(change: Damage) -> Damage:
    """A damage of what follows the thought."""

    @functools.wraps(change)
    def damage(dice: Random, text: str) -> str | None:
        start = _answer(text)
        rest = change(dice, text[start:])
        return None if rest is None else text[:start] + rest

    return damage


def _quote_dropped(dice: Random, text: str) -> str | None:
    return _without(dice, text, re.compile("[\"']"))


def _other_quotes(dice: Random, text: str) -> str | None:
    return text.translate(str.maketrans("\"'", "'\""))


def _curly_quotes(dice: Random, text: str) -> str | None:
    return re.sub(r"([\"'])([^\"'\n]*)\1", "“\\2”", text) if re.search("[\"']", text) else None


def _thought_unclosed(dice: Random, text: str) -> str | None:
    return _THOUGHT_END.sub("", text, count=1)


def _thought_unopened(dice: Random, text: str) -> str | None:
    start = _THOUGHT_START.search(text)
    return None if start is None else text[start.end() :]


def _thought_missing(dice: Random, text: str) -> str | None:
    return text[_answer(text) :]


def _tag_unclosed(dice: Random, text: str) -> str | None:
    return _without(dice, text, _CLOSING) if _CLOSING.search(text, _answer(text)) else None


@_in_answer
def _tag_missing(dice: Random, text: str) -> str | None:
    return _without(dice, text, _OPENING)


@_in_answer
def _tags_missing(dice: Random, text: str) -> str | None:
    return _CLOSING.sub("", _OPENING.sub("", text))


@_in_answer
def _tag_doubled(dice: Random, text: str) -> str | None:
    tags = list(re.finditer(rf"{_OPENING.pattern}|{_CLOSING.pattern}", text))
    one = dice.choice(tags) if tags else None
    return one and text[: one.end()] + one[0] + text[one.end() :]


@_in_answer
def _key_renamed(dice: Random, text: str) -> str | None:
    keys = [key for key in _KEY.finditer(text) if (key[1] or key[2]) in _SYNONYMS]
    if not keys:
        return None
    key = dice.choice(keys)
    start, end = key.span(1 if key[1] else 2)
    return text[:start] + _SYNONYMS[text[start:end]] + text[end:]


@_in_answer
def _wide_punctuation(dice: Random, text: str) -> str | None:
    marks = [mark for mark in _WIDE if mark in text]
    mark = dice.choice(marks) if marks else None
    return mark and text.replace(mark, _WIDE[mark])


def _number(changed: Callable[[str], str]) -> Damage:
    """A damage of one number of a place."""

    @_in_answer
    def damage(dice: Random, text: str) -> str | None:
        places = list(_PAIR.finditer(text))
        if not places:
            return None
        start, end = dice.choice(places).span(dice.choice((2, 4)))
        return text[:start] + changed(text[start:end]) + text[end:]

    return damage


def _numbers_as_text(dice: Random, text: str) -> str | None:
    quote = "'" if "'" in text and '"' not in text else '"'
    return _number(lambda number: f"{quote}{number}{quote}")(dice, text)


@_in_answer
def _box_for_a_point(dice: Random, text: str) -> str | None:
    place = _PAIR.search(text)
    if place is None:
        return None
    x, y = (float(place[side]) for side in (2, 4))
    box = place[3].join(f"{side:g}" for side in (x - 20, y - 20, x + 20, y + 20))
    return text[: place.start(2)] + box + text[place.end(4) :]


def _words_after(dice: Random, text: str) -> str | None:
    return text + dice.choice(("\n\nI will do this now.", " Done.", "\n\nNext, I check the result."))


@_in_answer
def _words_before(dice: Random, text: str) -> str | None:
    return dice.choice(("Sure! ", "Here is the next step:\n", "I will do this.\n\n")) + text


@_in_answer
def _fence(dice: Random, text: str) -> str | None:
    kind = dice.choice(("", "json", "python"))
    inner = _OPENING.match(text)
    if inner is not None and dice.random() < 0.5:  # inside the tags
        end = text.rfind("</")
        if end > inner.end():
            return f"{text[: inner.end()]}\n```{kind}\n{text[inner.end() : end].strip()}\n```\n{text[end:]}"
    return f"```{kind}\n{text.strip()}\n```"


def _second_call(dice: Random, text: str) -> str | None:
    return f"{text}\n{_NUMBER.sub('7', text[_answer(text) :])}"


@_in_answer
def _bracket_missing(dice: Random, text: str) -> str | None:
    ends = [end.start() for end in re.finditer(r"[)\]}]", text)]
    if not ends:
        return None
    at = dice.choice((ends[-1], dice.choice(ends)))
    return text[:at] + text[at + 1 :]


@_in_answer
def _bracket_surplus(dice: Random, text: str) -> str | None:
    return re.sub(r"([)\]}])(?!.*[)\]}])", r"\1\1", text, flags=re.DOTALL)


@_in_answer
def _cut_off(dice: Random, text: str) -> str | None:
    return text[: dice.randint(len(text) // 3, len(text) - 1)]


@_in_answer
def _blanks(dice: Random, text: str) -> str | None:
    tight, wide = re.sub(r"([,:]) ", r"\1", text), re.sub(r"([,:=]|(?<=\d),)(?! )", r"\1 ", text)
    return next((each for each in dice.sample((tight, wide), 2) if each != text), None)


@_in_answer
def _line_feeds(dice: Random, text: str) -> str | None:
    return text.replace("\n", "")


@_in_answer
def _comma_at_the_end(dice: Random, text: str) -> str | None:
    at = max(text.rfind(mark) for mark in ")]}")
    return None if at < 0 else text[:at] + "," + text[at:]


@_in_answer
def _other_case(dice: Random, text: str) -> str | None:
    words = r"(?<=\")(?:click|left_click|type|swipe|scroll|open)(?=\")|\b\w+(?=\()|\b[A-Z_]{4,}\b|(?<=<)action(?=>)"
    return re.sub(words, lambda word: word[0].swapcase(), text, count=1)


def _bold_label(dice: Random, text: str) -> str | None:
    return re.sub(r"^(Thought|Action|Memory|Reason|thoughts|actions)\s?:", r"**\1:**", text, flags=re.MULTILINE)


_VALUE = r"""(?:"(?:[^"\\\\]|\\\\.)*"|'(?:[^'\\\\]|\\\\.)*'|\[[^\[\]]*\])"""
_WORD = "(?:text|direction|status|app|app_name|button|content|value|input_text|typed_text|message|keys?)"
_ARGUMENT = re.compile(
    rf"""(?:,\s*)?["']{_WORD}["']\s*:\s*{_VALUE}(?=\s*[,}}])|(?:,\s*)?\b{_WORD}={_VALUE}(?=\s*[,)]|$)"""
    rf"""|<parameter={_WORD}>.*?</parameter>\n?|\tvalue:[^\t\n]*|(?<=[A-Z]) \[[^\[\]]*\]|(?<=\d),[a-z]\w*(?=\))""",
    re.DOTALL,
)


@_in_answer
def _argument_missing(dice: Random, text: str) -> str | None:
    found = _ARGUMENT.search(text)
    if found is None:
        return None
    before, after = text[: found.start()], text[found.end() :]
    return before + (re.sub(r"^,\s*", "", after) if before.endswith(("(", "{")) else after)


DAMAGES: dict[str, Damage] = {
    "as published": lambda dice, text: text,
    **{
        damage.__name__[1:].replace("_", " "): damage
        for damage in (
            *(_quote_dropped, _other_quotes, _curly_quotes, _thought_unclosed, _thought_unopened, _thought_missing),
            *(_tag_unclosed, _tag_missing, _tags_missing, _tag_doubled, _key_renamed, _wide_punctuation, _numbers_as_text),
        )
    },
    "decimals": _number(lambda number: number if "." in number else f"{number}.5"),
    "off the screen": _number(lambda number: "99999"),
    "negative": _number(lambda number: f"-{number}"),
    **{
        damage.__name__[1:].replace("_", " "): damage
        for damage in (
            *(_box_for_a_point, _words_after, _words_before, _fence, _second_call, _bracket_missing, _bracket_surplus),
            *(_cut_off, _blanks, _line_feeds, _comma_at_the_end, _other_case),
        )
    },
    "end mark": lambda dice, text: text + "<|im_end|>",
    "bold label": _bold_label,
    "argument missing": _argument_missing,
}
THOROUGH = frozenset({"as published", "argument missing"})
"""What is done to every response of a family, and not to a few that are drawn."""
