"""Agents of known strength for experiments on evaluation itself: the OCR baseline, with knowledge and weaknesses as options.

A trained model's skill, and how it reacts to its own past, can only be estimated. Here both are options: which screens the
agent knows the answer to, how often it slips, whether it finds back, and what its own past steps do to it. Slips are drawn
from the seed, the prompt and the screenshot, so the same run gives the same responses. The wire format is the baseline's, and
states for each past step whether the agent took it itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import Field

from guieval.actions import Action, Button, Click, LongPress, Point, Press, Scroll, Stop, Type, Wait, action_from_json
from guieval.data.files import read_bytes
from guieval.errors import UsageError
from guieval.frames import Size
from guieval.history import HistoryEntry, describe
from guieval.models import Family, Options, ParsedResponse, Request
from guieval.steps import StepTaskModel

from ._ocr_agent import Prompt, ScreenText, decide
from ._ocr_words import swipe
from .ocr_baseline import OcrBaseline, read_screen, write_reply

SLIP = "Slip:"
"""How the conclusion of a slip begins; the agent knows its own slips by it."""
RECENT = 3
"""The past steps that count for :attr:`ErrantOptions.habit` and :attr:`ErrantOptions.drift`."""

ErrorKind: TypeAlias = Literal[
    "none",
    "wait",
    "empty-tap",
    "long-press",
    "scroll",
    "back",
    "random-tap",
    "first-click",
    "typo",
    "unparseable",
    "finish",
    "impossible",
    "never-finish",
    "not-understood",
]
"""One kind of error in place of a known answer. In a share of the steps: a useless wait, a tap on the top edge, a swipe, BACK,
a tap at random, a long press for a click, a letter typed twice, prose, a task ended as finished or as impossible. In a share
of the tasks: a first click at random, WAIT for every end, taps at random only."""
OF_TASKS: frozenset[ErrorKind] = frozenset({"first-click", "never-finish", "not-understood"})
PROSE = "I am not sure what to do here."


class ErrantOptions(Options):
    """An agent's knowledge and its errors; the defaults are those of the baseline."""

    seed: int = Field(0, description="seed of all that is drawn")
    answers: Path | None = Field(
        None, description="JSON file of actions by key_of(goal, screenshot), which the agent knows by heart"
    )
    knows: float = Field(1.0, ge=0.0, le=1.0, description="share of these answers that it does know")
    off_path: Literal["guess", "back", "home"] = Field(
        "guess", description="on a screen without a known answer: act as the baseline, go back, or go home and begin again"
    )
    sight: float = Field(1.0, ge=0.0, le=1.0, description="share of the lines of text on a screen that the agent reads")
    slip: float = Field(0.0, ge=0.0, le=1.0, description="probability of an action at random instead of the chosen one")
    scroll: bool = Field(True, description="whether the agent scrolls; else it goes back instead")
    memory: int | None = Field(None, ge=0, description="past steps that the agent remembers; null for all")
    drift: float = Field(
        0.0,
        ge=-1.0,
        le=1.0,
        description="added to the probability of a slip if the recent steps are its own (below 0: subtracted)",
    )
    habit: float = Field(
        0.0, ge=0.0, le=1.0, description="probability of repeating the last step if the recent steps are its own"
    )
    error: ErrorKind = Field("none", description="kind of error in place of a known answer")
    rate: float = Field(1.0, ge=0.0, le=1.0, description="share of the steps, or of the tasks, with that error")
    noise: float = Field(
        0.0, ge=0.0, description="standard deviation of a known click's place, on each axis, in thousandths of the screen"
    )
    after_slip: Literal["ignore", "recover", "lost"] = Field(
        "ignore", description="after a slip of its own: go on, go back, or slip in every second step from then on"
    )


class ErrantPrompt(Prompt):
    """The baseline's prompt, and for each past step whether the agent took it itself."""

    own: tuple[bool, ...] = ()

    def own_share(self) -> float:
        """The share of the agent's own steps among the recent ones."""
        recent = self.own[-RECENT:]
        return sum(recent) / len(recent) if recent else 0.0

    def slips(self) -> list[bool]:
        """For each past step whether it was a slip of the agent's own."""
        return [own and (past.sentence or "").startswith(SLIP) for own, past in zip(self.own, self.history, strict=True)]


def key_of(goal: str, screenshot: bytes) -> str:
    """The key of a known answer: the goal and an encoded screenshot, as a digest."""
    return hashlib.sha256(goal.encode() + b"|" + screenshot).hexdigest()


@cache
def _answers(file: Path) -> dict[str, Any]:
    try:
        values = json.loads(read_bytes(file))
    except (OSError, ValueError) as error:
        raise UsageError(f"option answers: {str(file)!r} cannot be read: {error}") from None
    if not isinstance(values, dict):
        raise UsageError(f"option answers: {str(file)!r} does not hold a JSON object")
    return values


class OcrErrant(OcrBaseline):
    """The OCR baseline with the knowledge and the weaknesses of :class:`ErrantOptions`."""

    options: ErrantOptions
    family = Family(2026, ("phone", "desktop", "web", "grounding"))
    source: ClassVar[str] = "this project's own format: that of ocr_baseline, and whether each past step is the agent's own"

    def _prompt(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ErrantPrompt:
        own = tuple(entry.origin == "model" for entry in history)
        return ErrantPrompt(**dict(super()._prompt(task, history)), own=own)

    def check_installed(self) -> None:
        if self.options.answers is None:  # else it may never need to read a screen
            super().check_installed()

    def respond(self, request: Request) -> str:
        screen = request.images[-1]
        text = next(part for part in request.input.messages[-1].parts if isinstance(part, str))
        prompt = ErrantPrompt.model_validate_json(text)
        dice = Random(hashlib.sha256(f"{self.options.seed}|{text}|".encode() + screen.data).hexdigest())
        known = self._known(prompt, screen.data)
        if known is not None and self._errs(prompt, dice):
            wrong = _in_error(self.options.error, known, prompt, dice)
            if wrong is None:
                return PROSE
            known = wrong
        if self.options.noise and isinstance(known, Click):
            x, y = (min(1000.0, max(0.0, dice.gauss(place, self.options.noise))) for place in known.point)
            known = Click(point=Point(round(x, 2), round(y, 2)))
        decision = self._decision(prompt, partial(read_screen, screen.data), screen.size, known, dice)
        return write_reply(decision, screen.size)

    def _errs(self, prompt: ErrantPrompt, dice: Random) -> bool:
        """Whether the error of the options happens at this step."""
        error = self.options.error
        if error in OF_TASKS:
            dice = Random(f"{self.options.seed}|{prompt.goal}|{error}")
        return error != "none" and dice.random() < self.options.rate

    def _known(self, prompt: ErrantPrompt, screenshot: bytes) -> Action | None:
        """The action that the agent knows by heart for a screen; the same share of the screens in every mode."""
        options = self.options
        if options.answers is None:
            return None
        key = key_of(prompt.goal or prompt.target or "", screenshot)
        value = _answers(options.answers).get(key)
        if value is None or Random(f"{options.seed}|{key}").random() >= options.knows:
            return None
        return action_from_json(value)

    def _decision(
        self, prompt: ErrantPrompt, read: Callable[[], Sequence[ScreenText]], size: Size, known: Action | None, dice: Random
    ) -> ParsedResponse:
        options = self.options
        slips, own = prompt.slips(), prompt.own_share()
        if slips and slips[-1] and options.after_slip == "recover":
            return ParsedResponse(Press(button="BACK"), "The last step was a mistake.", "Press the back button.")
        chance = options.slip + options.drift * own
        if any(slips) and options.after_slip == "lost":
            chance = max(chance, 0.5)
        if dice.random() < chance:
            action = _slip(read(), dice)
            return ParsedResponse(action, "A slip.", f"{SLIP} {describe(action)}")
        if prompt.history and dice.random() < options.habit * own:
            action = prompt.history[-1].action
            return ParsedResponse(action, "As before.", describe(action))
        if known is not None:
            return ParsedResponse(known, "The answer is known.", describe(known))
        if options.off_path != "guess":
            button: Button = "BACK" if options.off_path == "back" else "HOME"
            return ParsedResponse(Press(button=button), "This screen is not known.", describe(Press(button=button)))
        return self._guess(prompt, [line for line in read() if dice.random() < options.sight], size)

    def _guess(self, prompt: ErrantPrompt, texts: Sequence[ScreenText], size: Size) -> ParsedResponse:
        start = 0 if self.options.memory is None else max(0, len(prompt.history) - self.options.memory)
        decision = decide(prompt.model_copy(update={"history": prompt.history[start:]}), texts, size)
        if isinstance(decision.action, Scroll) and not self.options.scroll:
            return replace(decision, action=Press(button="BACK"), conclusion="Press the back button.")
        return decision


def _in_error(error: ErrorKind, right: Action, prompt: ErrantPrompt, dice: Random) -> Action | None:
    """What an agent with this kind of error does instead, which may be the right action; ``None`` for prose."""
    match error, right:
        case ("wait", _) | ("never-finish", Stop()):
            return Wait()
        case "empty-tap", _:
            return Click(point=Point(500.0, 5.0))
        case "long-press", Click(point=point):
            return LongPress(point=point)
        case "scroll", _:
            return swipe("up")
        case "back", _:
            return Press(button="BACK")
        case "first-click", Click() if not any(isinstance(past.action, Click) for past in prompt.history):
            return _anywhere(dice)
        case (("random-tap" | "not-understood"), _):
            return _anywhere(dice)
        case "typo", Type(text=text):
            place = dice.randrange(len(text) + 1)
            return Type(text=text[:place] + (text[place - 1 : place] or "x") + text[place:])
        case "finish", _:
            return Stop()
        case "impossible", _:
            return Stop(status="impossible")
        case "unparseable", _:
            return None
    return right


def _anywhere(dice: Random) -> Click:
    return Click(point=Point(round(dice.uniform(0, 1000), 2), round(dice.uniform(0, 1000), 2)))


def _slip(texts: Sequence[ScreenText], dice: Random) -> Action:
    """An action that has nothing to do with the task: mostly a tap on some text, at times another place, a swipe or an end."""
    kind = dice.choices(("text", "place", "swipe", "back", "stop"), weights=(50, 20, 15, 10, 5))[0]
    match kind:
        case "text" if texts:
            x, y = dice.choice(texts).box.centre
            return Click(point=Point(min(1000.0, max(0.0, x)), min(1000.0, max(0.0, y))))
        case "swipe":
            return swipe(dice.choice(("up", "down")))
        case "back":
            return Press(button="BACK")
        case "stop":
            return Stop()
        case _:
            return _anywhere(dice)
