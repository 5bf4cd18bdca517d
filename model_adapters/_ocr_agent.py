"""The OCR baseline's policy: which action fits a prompt and the texts on a screen. No image and no model is touched here.

The agent is a floor, so every rule is one that a person could state: words shared between task and screen decide where
to tap, the task's phrases name the other actions (:mod:`._ocr_words`), and the history shows what is already done. It knows
nothing of any benchmark. Reading the screen and the wire format are in :mod:`.ocr_baseline`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pydantic import BaseModel

from guieval.actions import Action, Box, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait
from guieval.frames import Size
from guieval.history import describe
from guieval.models import ParsedResponse

from ._ocr_words import DELETE, ENTER, FIELD_TAPPED, QUOTED, Cue, affinity, key_words, plan, swipe, words

GOOD_MATCH = 0.6
"""Affinity from which a text on the screen is taken for what a task names; below it the agent looks further."""
SURE_MATCH = 0.85
"""Affinity required of a text that is not next in line."""
WEAK_MATCH = 0.3
"""Affinity from which a text is still a better guess than none, if an answer must be a place (grounding)."""
SCROLL_LIMIT = 3
SAME_PLACE = 20.0
"""Two taps closer than this, in thousandths of the screen on each axis, are the same tap."""
PLACES: tuple[tuple[str, Point, Point], ...] = (
    ("back return previous homepage", Point(78.0, 65.0), Point(30.0, 45.0)),
    ("more options menu settings search download share edit send save done", Point(922.0, 65.0), Point(960.0, 50.0)),
    ("close dismiss account profile", Point(922.0, 65.0), Point(970.0, 30.0)),
    ("add create new compose plus", Point(880.0, 930.0), Point(880.0, 30.0)),
    ("next", Point(922.0, 930.0), Point(970.0, 500.0)),
)
"""Where icons without text usually are, on portrait and on landscape screens: Material Design's app bar (icons 28 dp from
the edges, 52 dp from the top of 360 x 800 dp) and floating action button; on desktops the title bar's corners."""
FLOATING_BUTTON = PLACES[3][1]
SWITCH_X = 915.0
"""The place of a setting's switch in its row on a portrait screen."""
COMMIT = ("save", "done", "send", "ok", "confirm", "apply", "delete", "remove", "yes", "allow", "submit", "add", "create")
LOADING = re.compile(r"^\W*(?:loading|please wait|just a moment|one moment|connecting)\b", re.I)
ABSENT = re.compile(
    r"\b(?:no results?|not found|not available|unavailable|does(?:n't| not) exist|no longer|couldn't find)\b", re.I
)
IN_THE_WAY = re.compile(r"^\W*(?:not now|no,? thanks|maybe later|later|skip|dismiss|got it)\W*$", re.I)
FIELD = re.compile(r"^\W*Q?(?:search|type|enter|write|message|title|name|label|subject|text)", re.I)
KEY_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
STEPS: tuple[tuple[re.Pattern[str], Action], ...] = (
    (re.compile(r"^\W*wait\b", re.I), Wait()),
    (re.compile(r"\b(?:impossible|infeasible|cannot be (?:done|completed))\b", re.I), Stop(status="impossible")),
    (re.compile(r"\b(?:finish|complete|end|stop)\b.*\btask\b|\btask\b.*\b(?:complete|done|finished)\b", re.I), Stop()),
)
"""Step instructions that are one action wherever they are given; the first that fits counts."""
ONLY_A_PLACE = re.compile(r"^\W*$|^(?:click|long press) at [\d(]", re.I)


class ScreenText(NamedTuple):
    """One line of text on the screen and its place, unified coordinates."""

    text: str
    box: Box


class PastStep(BaseModel, frozen=True, extra="forbid"):
    """One past step as the prompt gives it."""

    sentence: str | None = None
    action: Action


class Prompt(BaseModel, frozen=True, extra="forbid"):
    """The agent's task. ``step`` is this step's instruction (setting ``low``), ``target`` what to find (``grounding``)."""

    goal: str | None = None
    step: str | None = None
    target: str | None = None
    history: tuple[PastStep, ...] = ()


class ReadScreen(NamedTuple):
    """The agent's view: texts without the keyboard's keys, whether a keyboard is shown, and the screen's shape."""

    texts: tuple[ScreenText, ...]
    keyboard: bool
    portrait: bool

    def has(self, label: str) -> bool:
        """Whether a text is exactly this label, given in lower case."""
        return any(text.casefold().strip() == label for text, _ in self.texts)


class Match(NamedTuple):
    """A text on the screen, how well it fits, and where to tap for it."""

    text: str
    score: float
    point: Point


def decide(prompt: Prompt, texts: Sequence[ScreenText], size: Size) -> ParsedResponse:
    """One action for the prompt and the screen; the same arguments give the same decision."""
    screen = look(texts, size)
    if prompt.target is not None:
        return ground(prompt.target, screen)
    if prompt.step is not None:
        return follow(prompt.step, screen)
    return advance(prompt.goal or "", screen, prompt.history)


def look(texts: Sequence[ScreenText], size: Size) -> ReadScreen:
    """The screen with its keyboard recognised: a row of keys read as one text, several single letters, or a space bar."""
    from rapidfuzz import fuzz

    low = [text.casefold().replace(" ", "") for text, box in texts if box.centre.y > 500]
    row = any(len(text) >= 6 and max(fuzz.partial_ratio(keys, text) for keys in KEY_ROWS) >= 75 for text in low)
    keyboard = row or "space" in low or sum(len(text) == 1 and text.isalpha() for text in low) >= 6
    kept = tuple(line for line in texts if not keyboard or line.box.centre.y <= 500 or len(line.text.strip()) > 1)
    return ReadScreen(kept, keyboard, size[1] > size[0])


def best_match(wanted: str, screen: ReadScreen, avoid: Point | None = None) -> Match | None:
    """The text that fits ``wanted`` best (the first in reading order among equals), except texts at ``avoid``."""
    keys = key_words(wanted)
    best: Match | None = None
    for text, box in screen.texts:
        score = affinity(keys, text)
        if score > (best.score if best else 0.0):
            point = _place_within(" ".join(keys), text, box)
            if avoid is None or not _same_place(point, avoid):
                best = Match(text, score, point)
    return best


def _place_within(wanted: str, text: str, box: Box) -> Point:
    from rapidfuzz import fuzz

    line = text.casefold()  # OCR joins neighbouring texts into one line, and only the matching part counts
    alignment = fuzz.partial_ratio_alignment(wanted, line) if len(line) > 2 * len(wanted) else None
    if alignment is None or alignment.score < 80:
        return _on_screen(box.centre)
    middle = (alignment.dest_start + alignment.dest_end) / 2 / len(line)
    return _on_screen(Point(box.x1 + middle * (box.x2 - box.x1), box.centre.y))


def _on_screen(point: Point) -> Point:
    return Point(min(1000.0, max(0.0, point.x)), min(1000.0, max(0.0, point.y)))


def _same_place(one: Point, other: Point) -> bool:
    return abs(one.x - other.x) < SAME_PLACE and abs(one.y - other.y) < SAME_PLACE


def _do(action: Action, why: str, conclusion: str | None = None) -> ParsedResponse:
    return ParsedResponse(action, why, conclusion or describe(action))


def _tap(match: Match, wanted: str) -> ParsedResponse:
    thought = f"{match.text!r} on the screen fits {wanted!r} ({match.score:.2f})."
    return _do(Click(point=match.point), thought, f"Tap {match.text!r}.")


def _tap_label(line: ScreenText, why: str) -> ParsedResponse:
    return _do(Click(point=_on_screen(line.box.centre)), f"{line.text!r} is {why}.", f"Tap {line.text!r}.")


def ground(target: str, screen: ReadScreen) -> ParsedResponse:
    """A click, always: on the text that fits best, else where such an icon usually is, else in the middle."""
    match = best_match(target, screen)
    if match and match.score >= GOOD_MATCH:
        return _tap(match, target)
    keys = key_words(target)
    share, place = max(((affinity(keys, row[0], precision=0.0), row) for row in PLACES), key=lambda pair: pair[0])
    if match and match.score >= WEAK_MATCH and share < 0.9:
        return _tap(match, target)
    if share >= GOOD_MATCH:
        point = place[1] if screen.portrait else place[2]
        return _do(Click(point=point), f"No text fits {target!r}; such icons are usually here.", f"Tap for {target!r}.")
    return _do(Click(point=Point(500.0, 500.0)), f"Nothing on the screen fits {target!r}.", "Tap the middle.")


def follow(step: str, screen: ReadScreen) -> ParsedResponse:
    """Follow one instruction for one step."""
    for pattern, action in STEPS:
        if pattern.search(step):
            return _do(action, f"The step is {step!r}.")
    cues = plan(step)
    for kind in ("type", "do", "hold", "switch"):
        for cue in (cue for cue in cues if cue.kind == kind):
            if kind == "type":
                return _do(Type(text=cue.text), f"The step says to enter {cue.text!r}.")
            if decision := pursue(cue, screen, (), WEAK_MATCH):
                return decision
    quoted = QUOTED.search(step)
    return ground(quoted[1] or quoted[2] if quoted else step, screen)


def advance(goal: str, screen: ReadScreen, history: Sequence[PastStep]) -> ParsedResponse:
    """The next step towards a goal: wait, open, tap, type, look further by scrolling and going back, or stop."""
    if any(LOADING.search(text) for text, _ in screen.texts):
        return _do(Wait(), "The screen is loading.", "Wait for the screen.")
    todo = [cue for cue in pending(plan(goal), history) if not _just_touched(cue, screen, history)]
    needed = [cue for cue in todo if cue.kind != "maybe"]
    due = needed[0] if needed else None
    opening = due is not None and isinstance(due.action, Open)
    if due and not opening and any(ABSENT.search(text) for text, _ in screen.texts):
        return _do(Stop(status="impossible"), "The screen says that it is not there.", "Report that it is impossible.")
    if screen.keyboard and not opening and (typing := next((cue for cue in needed if cue.kind == "type"), None)):
        # what can be typed now comes first: other texts of the task may stand on the screen by chance
        due = typing
        todo.sort(key=lambda cue: cue is not typing)
    for cue in todo:
        if cue is due or cue.kind not in ("do", "type"):
            least = GOOD_MATCH if cue is due or cue.kind == "maybe" else SURE_MATCH
            if decision := pursue(cue, screen, history, least):
                return decision
    if due and not history and (decision := _launch(goal, due, screen)):
        return decision
    if blocking := next((line for line in screen.texts if IN_THE_WAY.match(line.text)), None):
        return _tap_label(blocking, "a way past what covers the page")
    if (due is None or screen.has("cancel")) and (decision := _confirm(goal, screen, history)):
        return decision
    if due is None:
        return _do(Stop(), "Nothing that the task names is left to do.")
    last = history[-SCROLL_LIMIT:]
    if len(last) < SCROLL_LIMIT or not all(isinstance(past.action, Scroll) for past in last):
        return _do(swipe("up"), f"Nothing on the screen fits {due.text!r}; more may be below.")
    return _do(Press(button="BACK"), f"{due.text!r} is not on this page.")


def pending(cues: Sequence[Cue], history: Sequence[PastStep]) -> list[Cue]:
    """The cues that no past step has served, in order. A tap whose sentence names no thing (coordinates only) is taken for
    the next cue in line."""
    left = list(cues)
    for past in history:
        done = next((cue for cue in left if _serves(past, cue)), None)
        if done is not None:
            position = left.index(done)
            before = left[position - 1] if position else None
            left.remove(done)
            # a field that was typed into was focused, however that came about; a search submitted needs no suggestion
            if before and (
                (done.kind == "type" and before == Cue("tap", "search")) or (done == ENTER and before.kind == "maybe")
            ):
                left.remove(before)
        if isinstance(past.action, Press | Click | LongPress) and not any(cue.kind == "type" for cue in left):
            left = [cue for cue in left if cue != ENTER]  # what was typed has been put to use already
    return left


def _serves(past: PastStep, cue: Cue) -> bool:
    from rapidfuzz import fuzz

    sentence = past.sentence or ""
    match past.action, cue.action:
        case Open(app=app), Open(app=wanted):
            return affinity(words(wanted), app, precision=0.0) >= GOOD_MATCH
        case Type(text=text), _:
            return cue.kind == "type" and fuzz.ratio(cue.text.casefold(), text.casefold()) >= 80
        case Press(button=button), Press(button=wanted_button):
            return button == wanted_button
        case Scroll(direction=direction), Scroll(direction=wanted_direction):
            return direction == wanted_direction
        case Click() | LongPress(), None | Open() if cue.kind != "type":
            if ONLY_A_PLACE.match(sentence):
                return cue.action is None
            return affinity(key_words(cue.text), sentence, precision=0.0) >= 0.5
    return False


def _just_touched(cue: Cue, screen: ReadScreen, history: Sequence[PastStep]) -> bool:
    """Whether the last step tapped what the cue names, whatever its sentence called it."""
    last = history[-1].action if history else None
    if cue.kind not in ("tap", "hold", "switch") or not isinstance(last, Click | LongPress):
        return False
    match = best_match(cue.text, screen)
    if match is None or match.score < GOOD_MATCH:
        return False
    return abs(match.point.y - last.point.y) < SAME_PLACE if cue.kind == "switch" else _same_place(match.point, last.point)


def pursue(cue: Cue, screen: ReadScreen, history: Sequence[PastStep], least: float) -> ParsedResponse | None:
    """The action that serves one cue now, or ``None`` when what it needs is not on the screen (no affinity of ``least``)."""
    if cue.action is not None:
        return _do(cue.action, f"The task names it: {cue.text!r}.")
    # where the last step tapped, or the one before the text that was typed since
    before = next((past.action for past in reversed(history) if not isinstance(past.action, Type)), None)
    touched = before.point if isinstance(before, Click | LongPress) else None
    if cue.kind == "type":
        return _write(cue, screen, history, touched)
    match = best_match(cue.text, screen, avoid=touched)
    if match is None or match.score < least:
        free = screen.portrait and not screen.keyboard and not (touched and _same_place(touched, FLOATING_BUTTON))
        if cue.text == "create" and free:
            return _do(Click(point=FLOATING_BUTTON), "New things begin with the button in the lower corner.", "Tap to create.")
        return None
    decision = _tap(match, cue.text)
    if cue.kind == "hold":
        return replace(decision, action=LongPress(point=match.point), conclusion=f"Long press {match.text!r}.")
    if cue.kind == "switch" and screen.portrait and match.point.x < 700:
        return replace(decision, action=Click(point=Point(SWITCH_X, match.point.y)))
    return decision


def _write(cue: Cue, screen: ReadScreen, history: Sequence[PastStep], touched: Point | None) -> ParsedResponse | None:
    last = history[-1] if history else None
    field = best_match(cue.field, screen, avoid=touched) if cue.field else None
    named = field if field and field.score >= GOOD_MATCH else None
    if last and isinstance(last.action, Type):
        if named:
            return _tap(named, cue.field)
        return _do(Press(button="ENTER"), "The next text belongs into the next field.")
    if screen.keyboard or (last and isinstance(last.action, Click) and FIELD_TAPPED.search(last.sentence or "")):
        return _do(Type(text=cue.text), f"{cue.text!r} is to be entered and a field is active.")
    if named:
        return _tap(named, cue.field)
    line = next((line for line in screen.texts if FIELD.match(line.text)), None)
    if line is None or (touched and _same_place(_on_screen(line.box.centre), touched)):
        return None
    return _tap_label(line, "a field to type into")


def _launch(goal: str, due: Cue, screen: ReadScreen) -> ParsedResponse | None:
    """The app to begin with when the task names none: one on the home screen whose name the task's words hold, else, for
    something to switch on or off, the settings."""
    for text, _ in screen.texts:
        if len(text.strip()) > 2 and affinity(words(text), goal, precision=0.0) >= 0.9:
            return _do(Open(app=text), f"The task's words name the app {text!r}.")
    if due.kind == "switch":
        return _do(Open(app="Settings"), "Things are switched on and off in the settings.")
    return None


def _confirm(goal: str, screen: ReadScreen, history: Sequence[PastStep]) -> ParsedResponse | None:
    """A tap on what completes a form or answers a dialog, unless it was tapped just now (a dialog repeats the word)."""
    sentence = (history[-1].sentence or "") if history and not screen.has("cancel") else ""
    for word in COMMIT:
        for line in screen.texts:
            fits = line.text.casefold().strip() == word and not affinity([word], sentence, precision=0.0)
            if fits and (word not in ("delete", "remove") or DELETE.search(goal)):
                return _tap_label(line, "left to confirm")
    return None
