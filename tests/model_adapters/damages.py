"""Ways in which models' responses depart from the published format, each as a change drawn with the dice of its row."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

Damage = Callable[[Random, str], str | None]
"""The damaged text; ``None`` where there is nothing of the kind to damage."""

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


def _all(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    return list(pattern.finditer(text))


def _without(dice: Random, text: str, pattern: re.Pattern[str]) -> str | None:
    found = _all(pattern, text)
    if not found:
        return None
    one = dice.choice(found)
    return text[: one.start()] + text[one.end() :]


def _answer(text: str) -> int:
    """Where the answer begins: after the thought, if there is one."""
    ends = _all(_THOUGHT_END, text)
    labels = _all(re.compile(r"^(?:Action|actions|action|explain)\s?:", re.MULTILINE), text)
    return ends[-1].end() if ends else labels[-1].start() if labels else 0


def _quote_dropped(dice: Random, text: str) -> str | None:
    return _without(dice, text, re.compile("[\"']"))


def _other_quotes(dice: Random, text: str) -> str | None:
    changed = text.translate(str.maketrans("\"'", "'\""))
    return changed if changed != text else None


def _curly_quotes(dice: Random, text: str) -> str | None:
    return re.sub(r"([\"'])([^\"'\n]*)\1", "“\\2”", text) if re.search("[\"']", text) else None


def _thought_unclosed(dice: Random, text: str) -> str | None:
    end = _THOUGHT_END.search(text)
    return None if end is None else text[: end.start()] + text[end.end() :]


def _thought_unopened(dice: Random, text: str) -> str | None:
    start = _THOUGHT_START.search(text)
    return None if start is None else text[start.end() :]


def _thought_missing(dice: Random, text: str) -> str | None:
    start = _answer(text)
    return text[start:] if start else None


def _tag_unclosed(dice: Random, text: str) -> str | None:
    return _without(dice, text, _CLOSING) if _CLOSING.search(text, _answer(text)) else None


def _tag_missing(dice: Random, text: str) -> str | None:
    start = _answer(text)
    rest = _without(dice, text[start:], _OPENING)
    return None if rest is None else text[:start] + rest


def _tags_missing(dice: Random, text: str) -> str | None:
    start = _answer(text)
    rest = _CLOSING.sub("", _OPENING.sub("", text[start:]))
    return text[:start] + rest if rest != text[start:] else None


def _tag_doubled(dice: Random, text: str) -> str | None:
    tags = _all(re.compile(rf"{_OPENING.pattern}|{_CLOSING.pattern}"), text[_answer(text) :])
    if not tags:
        return None
    one, start = dice.choice(tags), _answer(text)
    return text[: start + one.end()] + one[0] + text[start + one.end() :]


def _key_renamed(dice: Random, text: str) -> str | None:
    start = _answer(text)
    keys = [key for key in _all(_KEY, text[start:]) if (key[1] or key[2]) in _SYNONYMS]
    if not keys:
        return None
    key = dice.choice(keys)
    at, word = start + key.start(1 if key[1] else 2), key[1] or key[2]
    return text[:at] + _SYNONYMS[word] + text[at + len(word) :]


def _wide_punctuation(dice: Random, text: str) -> str | None:
    start = _answer(text)
    marks = [mark for mark in _WIDE if mark in text[start:]]
    if not marks:
        return None
    mark = dice.choice(marks)
    return text[:start] + text[start:].replace(mark, _WIDE[mark])


def _number(dice: Random, text: str, changed: Callable[[str], str]) -> str | None:
    start = _answer(text)
    places = _all(_PAIR, text[start:])
    if not places:
        return None
    place = dice.choice(places)
    side = dice.choice((2, 4))
    at, end = start + place.start(side), start + place.end(side)
    return text[:at] + changed(text[at:end]) + text[end:]


def _numbers_as_text(dice: Random, text: str) -> str | None:
    quote = "'" if "'" in text and '"' not in text else '"'
    return _number(dice, text, lambda number: f"{quote}{number}{quote}")


def _decimals(dice: Random, text: str) -> str | None:
    return _number(dice, text, lambda number: number if "." in number else f"{number}.5")


def _off_the_screen(dice: Random, text: str) -> str | None:
    return _number(dice, text, lambda number: "99999")


def _negative(dice: Random, text: str) -> str | None:
    return _number(dice, text, lambda number: f"-{number}")


def _box_for_point(dice: Random, text: str) -> str | None:
    start = _answer(text)
    place = _PAIR.search(text, start)
    if place is None:
        return None
    x, y = (float(place[side]) for side in (2, 4))
    box = place[3].join(f"{side:g}" for side in (x - 20, y - 20, x + 20, y + 20))
    return text[: place.start(2)] + box + text[place.end(4) :]


def _words_after(dice: Random, text: str) -> str | None:
    return text + dice.choice(("\n\nI will do this now.", " Done.", "\n\nNext, I check the result."))


def _words_before(dice: Random, text: str) -> str | None:
    start = _answer(text)
    return text[:start] + dice.choice(("Sure! ", "Here is the next step:\n", "I will do this.\n\n")) + text[start:]


def _fence(dice: Random, text: str) -> str | None:
    start = _answer(text)
    kind = dice.choice(("", "json", "python"))
    inner = _OPENING.match(text, start)
    if inner is not None and dice.random() < 0.5:  # inside the tags
        end = text.rfind("</")
        if end > inner.end():
            return f"{text[: inner.end()]}\n```{kind}\n{text[inner.end() : end].strip()}\n```\n{text[end:]}"
    return f"{text[:start]}```{kind}\n{text[start:].strip()}\n```"


def _second_call(dice: Random, text: str) -> str | None:
    return f"{text}\n{_NUMBER.sub('7', text[_answer(text) :])}"


def _bracket_missing(dice: Random, text: str) -> str | None:
    start = _answer(text)
    ends = [start + end.start() for end in _all(re.compile(r"[)\]}]"), text[start:])]
    if not ends:
        return None
    at = dice.choice((ends[-1], dice.choice(ends)))
    return text[:at] + text[at + 1 :]


def _bracket_surplus(dice: Random, text: str) -> str | None:
    ends = _all(re.compile(r"[)\]}]"), text[_answer(text) :])
    if not ends:
        return None
    at = _answer(text) + ends[-1].end()
    return text[:at] + ends[-1][0] + text[at:]


def _cut_off(dice: Random, text: str) -> str | None:
    start = _answer(text)
    return text[: dice.randint(start + (len(text) - start) // 3, len(text) - 1)]


def _blanks(dice: Random, text: str) -> str | None:
    start = _answer(text)
    tight = re.sub(r"([,:]) ", r"\1", text[start:])
    wide = re.sub(r"([,:=]|(?<=\d),)(?! )", r"\1 ", text[start:])
    return next((text[:start] + each for each in dice.sample((tight, wide), 2) if each != text[start:]), None)


def _line_feeds(dice: Random, text: str) -> str | None:
    start = _answer(text)
    joined = re.sub(r"\n", "", text[start:])
    return text[:start] + joined if joined != text[start:] else None


def _comma_at_the_end(dice: Random, text: str) -> str | None:
    at = max(text.rfind(mark) for mark in ")]}")
    return None if at < _answer(text) or at < 0 else text[:at] + "," + text[at:]


def _other_case(dice: Random, text: str) -> str | None:
    start = _answer(text)
    words = _all(
        re.compile(r"(?<=\")(?:click|left_click|type|swipe|scroll|open)(?=\")|\b\w+(?=\()|\b[A-Z_]{4,}\b|(?<=<)action(?=>)"),
        text[start:],
    )
    if not words:
        return None
    word = words[0]
    return text[: start + word.start()] + word[0].swapcase() + text[start + word.end() :]


def _end_mark(dice: Random, text: str) -> str | None:
    return text + "<|im_end|>"


def _bold_label(dice: Random, text: str) -> str | None:
    changed = re.sub(r"^(Thought|Action|Memory|Reason|thoughts|actions)\s?:", r"**\1:**", text, flags=re.MULTILINE)
    return changed if changed != text else None


_VALUE = r"""(?:"(?:[^"\\\\]|\\\\.)*"|'(?:[^'\\\\]|\\\\.)*'|\[[^\[\]]*\])"""
_WORD = "(?:text|direction|status|app|app_name|button|content|value|input_text|typed_text|message|keys?)"
_ARGUMENT = re.compile(
    rf"""(?:,\s*)?["']{_WORD}["']\s*:\s*{_VALUE}(?=\s*[,}}])|(?:,\s*)?\b{_WORD}={_VALUE}(?=\s*[,)]|$)"""
    rf"""|<parameter={_WORD}>.*?</parameter>\n?|\tvalue:[^\t\n]*|(?<=[A-Z]) \[[^\[\]]*\]|(?<=\d),[a-z]\w*(?=\))""",
    re.DOTALL,
)


def _argument_missing(dice: Random, text: str) -> str | None:
    start = _answer(text)
    found = _ARGUMENT.search(text, start)
    if found is None:
        return None
    before, after = text[: found.start()], text[found.end() :]
    return before + (re.sub(r"^,\s*", "", after) if before.endswith(("(", "{")) else after)


def _as_published(dice: Random, text: str) -> str | None:
    return text


DAMAGES: dict[str, Damage] = {
    "as published": _as_published,
    "quote dropped": _quote_dropped,
    "other quotes": _other_quotes,
    "curly quotes": _curly_quotes,
    "thought unclosed": _thought_unclosed,
    "thought unopened": _thought_unopened,
    "thought missing": _thought_missing,
    "tag unclosed": _tag_unclosed,
    "tag missing": _tag_missing,
    "tags missing": _tags_missing,
    "tag doubled": _tag_doubled,
    "key renamed": _key_renamed,
    "wide punctuation": _wide_punctuation,
    "numbers as text": _numbers_as_text,
    "decimals": _decimals,
    "off the screen": _off_the_screen,
    "negative": _negative,
    "box for a point": _box_for_point,
    "words after": _words_after,
    "words before": _words_before,
    "fence": _fence,
    "second call": _second_call,
    "bracket missing": _bracket_missing,
    "bracket surplus": _bracket_surplus,
    "cut off": _cut_off,
    "blanks": _blanks,
    "line feeds": _line_feeds,
    "comma at the end": _comma_at_the_end,
    "other case": _other_case,
    "end mark": _end_mark,
    "bold label": _bold_label,
    "argument missing": _argument_missing,
}
THOROUGH = frozenset({"as published", "argument missing"})
"""What is done to every response of a family, and not to a few that are drawn."""
