"""The source of an adapter as far as a checkpoint's files state it; each line that no file states says ``NOT FOUND``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from guieval.actions import ActionType, Button
from guieval.conformance.checkpoint_folder import INSTRUCTION, PAST, CheckpointFolder, PromptFile
from guieval.data.files import read_text

TEMPLATES = Path(__file__).parent / "commands" / "templates"
GAP = "NOT FOUND: "
"""What a comment begins with that names what no file states."""
IMPORTS = {
    "collections.abc": ("Sequence",),
    "typing": ("Literal",),
    "pydantic": ("Field",),
    "guieval.actions": ("Action", "ActionSpace", "Click"),
    "guieval.errors": ("ParseError",),
    "guieval.frames": ("PER_1000", "RELATIVE"),
    "guieval.history": ("HistoryEntry",),
    "guieval.models": (
        *("QWEN_PIXELS", "ABCModel", "DisputedScale", "ImageLimits", "Message", "ModelInput"),
        *("ParsedResponse", "chat", "main_instruction"),
    ),
    "guieval.models.parsing": (
        *("CallTable", "first_round", "function_calls", "function_text", "json_value", "named_object"),
        *("split_reasoning", "stated_place"),
    ),
    "guieval.models.parsing.call_tables": (
        *("BACK", "FINISH", "OUTSIDE", "answered", "asked", "double_clicked", "dragged", "ended", "hold", "hovered", "opened"),
        *("pressed", "pressed_together", "right_clicked", "scrolled", "stopped", "swiped", "tap", "typed", "waited", "wheel"),
    ),
    "guieval.steps": ("StepTaskModel",),
}
"""What a written file may import; it imports what it uses."""
_NAMED = re.compile(r"""['"]x['"]""")
_BUTTONS: dict[str, Button] = {
    **{"back": "BACK", "home": "HOME", "enter": "ENTER"},
    **dict.fromkeys(("recent", "recents", "app_switch", "overview"), "RECENT"),
}


def adapter_from(name: str, title: str, found: CheckpointFolder) -> str:
    """The file of a family called ``name``, with a class called ``title``, that asks and reads as the files say."""
    calls = found.notation != "point"
    options = f"{title}Options" if calls or found.scale[0] == 999 else "ImageLimits"
    lines = [f"class {title}(ABCModel):", f'    """Adapter of {name}."""', "", f"    options: {options}"]
    lines += (f"    {line}" for line in (*_space_and_table(found), *_frame_and_image(found), *_sources(found)))
    methods = [f"    {line}" for line in _request(found)]
    form = found.notation if calls else "named_place" if _NAMED.search(found.words) else "place"
    responses = read_text(TEMPLATES / f"responses_{form}.txt").replace("TOOL", found.tool or "TOOL")
    lines += ("", *methods, "", responses.rstrip())
    body = "\n".join([*(_options(options, found, calls=calls) if options != "ImageLimits" else ()), *lines]) + "\n"
    based = f" ({kind} based)" if (kind := found.config.get("model_type")) else ""
    words = {
        "tags": "calls in tags of their own",
        "json": "calls as JSON in tags",
        "point": "a place",
        "object": "JSON objects",
    }
    note = "A comment with NOT FOUND is on a guess: none of the files says it."
    head = f'"""{name}{based}: {words[found.notation]}.\n\n{note}\n"""\n'
    return f"{head}\nfrom __future__ import annotations\n\n{_imports(body)}\n\n{body}"


def _imports(body: str) -> str:
    """The imports that ``body`` needs, in their usual order."""
    lines = ["import json\n"] if "json.dumps" in body else []
    for module, names in IMPORTS.items():
        if found := [name for name in names if re.search(rf"\b{name}\b", body)]:
            lines.append(f"from {module} import {', '.join(found)}\n")
    groups = ("collections", "typing", "json"), ("pydantic",), ("guieval",)
    return "\n".join(
        part for group in groups if (part := "".join(line for line in lines if line.split()[1].split(".")[0] in group))
    )


def _options(name: str, found: CheckpointFolder, *, calls: bool) -> Iterator[str]:
    disputed = found.scale[0] == 999
    yield f"class {name}(ImageLimits{', DisputedScale' if disputed else ''}):"
    yield '    """Options of its checkpoints."""'
    yield ""
    if disputed:
        yield f'    # "{found.scale[1]}" in a prompt'
        yield '    scale: Literal[999, 1000] = Field(999, description="extent of the screen in a response")'
    if calls:
        yield f"    # {GAP}how many screenshots are sent"
        yield '    max_images: int = Field(1, ge=1, description="screenshots per request, the current one included")'
    yield ""
    yield ""


# --- what a class states ----------------------------------------------------------------------------------------------


def _space_and_table(found: CheckpointFolder) -> Iterator[str]:
    rows = [(action, *_form(action, found)) for action in found.actions]
    if found.notation != "point" and not rows:
        rows = [("click", 'tap("coordinate")', "CLICK", "the names of actions, and of their arguments")]
    kinds = sorted({kind for _, _, kind, _ in rows if kind}) or ["CLICK"]
    back = {"BACK"} if any(form == "BACK" for _, form, *_ in rows) else set()
    buttons = sorted({_BUTTONS[each.lower()] for each in found.buttons if each.lower() in _BUTTONS} | back)
    yield "action_space = ActionSpace("
    yield f"    {_set(kinds)},"
    yield f"    {_set(buttons)},"
    if any(form.startswith("ended(") for _, form, *_ in rows):
        yield f"    statuses={_set(['finish'])},"
    yield ")"
    if not rows:
        return
    yield "table = CallTable("
    yield "    {"
    for action, form, _, gap in rows:
        yield f'        "{action}": {form},' + (f"  # {GAP}{gap}" if gap else "")
    yield "    }"
    yield ")"


def _set(words: Sequence[str]) -> str:
    return f"frozenset({{{', '.join(map(_quoted, words))}}})" if words else "frozenset()"


def _form(action: str, found: CheckpointFolder) -> tuple[str, ActionType | None, str]:
    """How a call is read, as source; the type of action that it is, if it is one; and what was not found."""
    place, text = found.argument("coordinate", "point", "position", "start_box"), found.argument("text", "content", "value")
    end = found.argument("coordinate2", "end_coordinate", "end_point", "end_box")
    time, amount = found.argument("time", "duration", "seconds"), found.argument("pixels", "amount", "clicks")
    seconds = f', seconds="{time}"' if time else ""
    status, direction = found.argument("status"), found.argument("direction")
    said, question = found.argument("answer"), found.argument("question")
    ending = (status, f'stopped("{status}")') if status else (said, f'ended(FINISH, "{said}", other=True)')
    known: dict[str, tuple[object, str, ActionType | None]] = {
        **dict.fromkeys(("click", "left_click", "tap"), (place, f'tap("{place}")', "CLICK")),
        "long_press": (place, f'hold("{place}"{seconds})', "LONG_PRESS"),
        "swipe": (place and end, f'swiped("{place}", "{end}")', "SCROLL"),
        "type": (text, f'typed("{text}")', "TYPE"),
        **dict.fromkeys(("open", "open_app"), (text, f'opened("{text}")', "OPEN")),
        "answer": (text, f'answered("{text}")', None),
        "wait": (time, f'waited("{time}")', "WAIT"),
        "terminate": (*ending, "STOP"),
        "history_back": (True, "BACK", "PRESS"),
        **dict.fromkeys(("ask_user", "ask_user_question"), (question, f'asked("{question}")', None)),
        "key": (found.argument("keys", "key") or text, f'pressed_together("{found.argument("keys", "key") or text}")', None),
        "mouse_move": (place, f'hovered("{place}")', None),
        "left_click_drag": (place, f'dragged((), ("{place}",))', None),
        "right_click": (place, f'right_clicked("{place}")', None),
        "double_click": (place, f'double_clicked("{place}")', None),
    }
    if action == "system_button":
        names = {each: _BUTTONS.get(each.lower()) for each in found.buttons}
        pairs = ", ".join(f'"{each}": "{button}"' for each, button in names.items() if button)
        unknown = ", ".join(each for each, button in names.items() if not button)
        return f'pressed("button", {{{pairs}}})', "PRESS", f"what {unknown} is" if unknown else ""
    if action == "scroll" and direction:
        return f'scrolled("{direction}", "{place}")', "SCROLL", "whether the direction is the finger's or the content's"
    if action in ("scroll", "hscroll") and amount:
        ways = '"down", "up"' if action == "scroll" else '"left", "right"'
        gap = "where a positive number turns the wheel"
        both = {"scroll", "hscroll"} <= {*found.actions}  # else the space has no SCROLL, which is one of four directions
        gap += "" if both else ", and that it turns one way only, so SCROLL is not in the action space"
        return f'wheel({ways}, "{amount}", place=("{place}",))', "SCROLL" if both else None, gap
    needs, form, kind = known.get(action, (None, "", None))
    return (form, kind, "") if needs else ("OUTSIDE", None, f"what {action} does" if not form else f"the arguments of {action}")


def _frame_and_image(found: CheckpointFolder) -> Iterator[str]:
    extent, words = found.scale
    if extent in (1, 1000):
        yield f'fixed_frame = {"RELATIVE" if extent == 1 else "PER_1000"}  # "{words}" in a prompt'
    elif extent is None:
        yield f"fixed_frame = PER_1000  # {GAP}in which frame places are"
    elif extent == 0:
        sure = "" if words.startswith("{") else GAP
        yield f'# {sure}places are pixels of the resized screenshot: "{words}" in a prompt'
    processor, pixels = found.found_in.get("processor"), found.pixels
    yield f"patch = {found.patch or 28}" + (
        f"  # {processor or 'config.json'}" if found.patch else f"  # {GAP}the patch of its images"
    )
    if pixels is not None:
        yield f"pixels = {pixels[0]:_}, {pixels[1]:_}  # {processor}"
    else:
        yield f"pixels = QWEN_PIXELS  # {GAP}least and most pixels of an image"
    if found.notation != "point":
        thought = "Thought: {thought}\\n" if "Thought:" in found.words else "<think>\\n{thought}\\n</think>\\n\\n"
        stated = "Thought:" in found.words or "<think>" in found.template
        yield f'thought_form = "{thought}"' + ("" if stated else f"  # {GAP}how a thought is written")


def _sources(found: CheckpointFolder) -> Iterator[str]:
    places = [re.match(r"# origin: (\S+) \| path: (\S+).*?commit: ([0-9a-f]{7})", each.origin) for each in found.prompts]
    stated = next((f"github.com/{each[1]}@{each[3]} {each[2]}" for each in places if each), "")
    yield f'source = "{stated}"' + ("" if stated else f"  # {GAP}where its wire format is published")
    yield f'frame_source = "{stated}"' + ("" if stated else f"  # {GAP}where its frame is published")
    yield f"# {GAP}its year and tasks: family = Family(year, tasks), which `guieval models` shows"


# --- the request ------------------------------------------------------------------------------------------------------


def _text(prompt: PromptFile) -> tuple[str, str]:
    """The expression of a prompt's text, and what was not found of it."""
    values, unknown = [], []
    for name in prompt.placeholders:
        if name in INSTRUCTION:
            values.append(f"{name}=main_instruction(task)")
        elif name in PAST:
            values.append(f'{name}="\\n".join(map(self.sentence, past)) or "None"')
        elif name.removeprefix("screen_") in ("width", "height"):
            values.append(f'{name}=self.screen(task)["{name.removeprefix("screen_")}"]')
        else:
            unknown.append(name)
    gaps = [f"what {{{name}}} is" for name in unknown] + ["the form of the past"] * (prompt.first(PAST) is not None)
    return f"self.prompt({', '.join([_quoted(prompt.name), *values])})", ", ".join(gaps)


def _quoted(word: str) -> str:
    return f'"{word}"'


def _request(found: CheckpointFolder) -> Iterator[str]:
    yield "def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:"
    system, user = (None if each is None else _text(each) for each in (found.system, found.user))
    gaps = [each[1] for each in (system, user) if each is not None and each[1]]
    words = [] if user is None else [user[0]]
    if not any(each.first(INSTRUCTION) for each in found.prompts):
        words.append("main_instruction(task)")
        gaps += ["where the task is"] if user is not None else []
    if (switch := found.thinking_variable) is not None:
        gaps.append(f'whether it thinks; extra={{"chat_template_kwargs": {{"{switch}": False}}}} turns it off')
    told, point = any(each.first(PAST) for each in found.prompts), found.notation == "point"
    gaps += ["whether the image is before the words"] * point
    gaps += ["how past steps are shown; here as turns, the task in the first"] * (not told and not point)
    yield from (f"    # {GAP}{gap}" for gap in gaps)
    if told or not point:
        yield '    past = () if task.setting == "grounding" else history'
    if point:
        yield f"    return chat({', '.join(['self.image(task)', *words, *([f'system={system[0]}'] if system else ())])})"
        return
    first = f'Message("system", ({system[0]},))' if system else ""
    yield f"    messages = [{first}]"
    if told:
        yield f'    messages.append(Message("user", ({", ".join([*words, "self.image(task)"])})))'
    else:
        yield f"    turns = [({''.join(f'{each}, ' for each in words).rstrip()})]"
        yield "    messages += self.conversation(task, past, self.options.max_images, turns)"
    yield "    return ModelInput(tuple(messages))"
