"""Makers' own readers as oracles: gives damaged responses to the code that makers publish, and writes down what it reads.

The code is read from clones of the makers' repositories (bare ones too) in folders ``OWNER+NAME``, ``OWNER/NAME`` or ``NAME``,
at the commits named here. Of a file only the reading function is run, without what the file imports: models and devices are not
needed; json5, and for TypeScript esbuild and node, are. Nothing of it is kept but its results, in
``tests/model_adapters/makers_results/``.

    python -m perf.makers FOLDER ..      # from the repository's root: writes the tables
    python -m perf.makers --differences  # what differs, by family and damage
    python -m perf.makers --table        # the table of docs/models.md
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import logging
import math
import re
import subprocess
import sys
import typing
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

from tests.model_adapters.makers import FAMILIES, LENIENCIES, NO_READER, Family, drawn, kind, ours, page_row, table_of, theirs

ANNOTATIONS = import_module("__future__").annotations.compiler_flag
"""Leaves annotations unevaluated, which name what is not imported."""
Names = dict[str, Any]
Files: TypeAlias = Callable[[str], str]
"""Gives the text of a file in a reader's repository."""
Read: TypeAlias = Callable[[str], Any]
"""Reads a response."""


class Reader(NamedTuple):
    """Where a family's reader is, and how it is called on a response."""

    repository: str
    commit: str
    path: str
    reader: str
    """What is run, in words."""
    read: Callable[[Files, str], Read]
    """Of the text of ``path``: what reads a response."""


def stand_ins() -> Names:
    """The modules of the standard library that readers use, and records in place of others' classes."""
    record = SimpleNamespace
    return {
        **{"re": re, "json": json, "ast": ast, "math": math, "OrderedDict": OrderedDict, "logger": logging.getLogger("makers")},
        **dict.fromkeys(("ToolCall", "FunctionCall", "ExtractedToolCallInformation"), record),
        **{name: getattr(typing, name) for name in ("Any", "Dict", "List", "Optional", "Tuple")},
    }


def run(source: str, names: Sequence[str], **given: Any) -> Names:
    """The named functions, classes and constants of a file, run alone; classes without their bases."""
    kept = [node for node in ast.parse(source).body if _named(node) in names]
    missing = set(names) - {_named(node) for node in kept}
    if missing:
        raise LookupError(f"the file lacks {', '.join(sorted(missing))}")
    for node in kept:
        if isinstance(node, ast.ClassDef):
            node.bases = []
    return _run(kept, {**stand_ins(), **given})


def _named(node: ast.stmt) -> str | None:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return getattr(node, "name", None)


def _run(statements: Sequence[ast.stmt], names: Names) -> Names:
    module = ast.fix_missing_locations(ast.Module([*statements], []))
    exec(compile(module, "<reader>", "exec", ANNOTATIONS, dont_inherit=True), names)
    return names


def method(source: str, owner: str, name: str) -> Callable[..., Any]:
    """A method of a class as a function of ``self``."""
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == owner]
    found = [node for node in classes[0].body if isinstance(node, ast.FunctionDef) and node.name == name]
    called: Callable[..., Any] = _run(found, stand_ins())[name]
    return called


def lines(source: str, first: str, last: str | None = None) -> list[ast.stmt]:
    """The statements of a function's body from the one that begins with ``first`` to the one that begins with ``last``."""
    for node in ast.walk(ast.parse(source)):
        for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if not isinstance(body, list):
                continue
            texts = [ast.unparse(each) for each in body if isinstance(each, ast.stmt)]
            start = next((at for at, text in enumerate(texts) if text.startswith(first)), None)
            if start is not None:
                end = (
                    start
                    if last is None
                    else next(at for at, text in enumerate(texts) if at >= start and text.startswith(last))
                )
                return body[start : end + 1]
    raise LookupError(f"the file has no statement {first!r}")


def _venus_2(files: Files, source: str) -> Read:
    """The first call of the response, or of its sequence."""
    names = [*("ActionCall", "_Schema", "SCHEMAS", "COORD_ARGS", "TERMINALS", "NORM", "_literal", "_parse_call", "_is_number")]
    code = run(
        source,
        [*names, "_validate", "parse_action_call", "parse_response"],
        dataclass=dataclass,
        field=field,
        ComputerActionError=ValueError,
    )

    def read(text: str) -> Any:
        call = code["parse_response"](text)[2]
        first = call.actions[0] if call.actions else call
        return first.name, first.kwargs

    return read


def _function(*names: str, call: Callable[[Names, str], Any]) -> Callable[[Files, str], Read]:
    def read(files: Files, source: str) -> Read:
        code = run(source, names)
        return lambda text: call(code, text)

    return read


def _method(owner: str, name: str, call: Callable[[Callable[..., Any], str], Any]) -> Callable[[Files, str], Read]:
    def read(files: Files, source: str) -> Read:
        reader = method(source, owner, name)
        return lambda text: call(reader, text)

    return read


_LOGGED = SimpleNamespace(logger=logging.getLogger("makers"), config=SimpleNamespace(terminate_on_parse_error=False))
"""A ``self`` of which a method uses the logger alone."""


def _tars(kind: str, height: int, width: int) -> Callable[[Files, str], Read]:
    names = ("IMAGE_FACTOR", "MIN_PIXELS", "MAX_PIXELS", "MAX_RATIO", "round_by_factor", "ceil_by_factor", "floor_by_factor")
    functions = ("smart_resize", "convert_point_to_coordinates", "parse_action", "escape_single_quotes")

    def call(code: Names, text: str) -> Any:
        actions = code["parse_action_to_structure_output"](text, 1000, height, width, model_type=kind)
        return [{"action_type": each["action_type"], "action_inputs": each["action_inputs"]} for each in actions]

    return _function(*names, *functions, "parse_action_to_structure_output", call=call)


def _called(information: Any) -> Any:
    if not information.tools_called:
        return None
    return [{"name": call.function.name, "arguments": json.loads(call.function.arguments)} for call in information.tool_calls]


def _hermes(files: Files, source: str) -> Read:
    owner = run(source, ["Hermes2ProToolParser"])["Hermes2ProToolParser"]
    parser = owner.__new__(owner)
    return lambda text: _called(parser.extract_tool_calls(text, None))


_ARRAYS = ("coordinate", "coordinate2")
_PARAMETERS = {
    **{name: {"type": "array"} for name in _ARRAYS},
    **{name: {"type": "string"} for name in ("action", "text", "button", "status")},
    "time": {"type": "number"},
}
_TOOLS = [SimpleNamespace(type="function", function=SimpleNamespace(name="mobile_use", parameters={"properties": _PARAMETERS}))]


def _coder(files: Files, source: str) -> Read:
    owner = run(source, ["Qwen3CoderToolParser"])["Qwen3CoderToolParser"]
    parser = owner.__new__(owner)
    # as its constructor does, which also needs a tokenizer
    wanted = ("tool_call", "parameter_", "function_", "prev_tool_call_arr")
    built = next(node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    kept = [node for node in built.body if ast.unparse(node).startswith(tuple(f"self.{name}" for name in wanted))]
    kept = [node for node in kept if "token_id" not in ast.unparse(node)]
    _run(kept, {**stand_ins(), "self": parser})
    return lambda text: _called(parser.extract_tool_calls(text, SimpleNamespace(tools=_TOOLS)))


def _s1(files: Files, source: str) -> Read:
    tags = run(files("UI-S1/x/data/text.py"), ["parse_tags"])["parse_tags"]
    code = run(source, ["JsonFormat"], parse_tags=tags)["JsonFormat"]
    reader = code.__new__(code)
    return lambda text: reader.parse_response(text)["action_content"]


def _cpm(files: Files, source: str) -> Read:
    jsonschema = import_module("jsonschema")
    given = {"EXTRACT_SCHEMA": json.loads(files("eval/utils/schema/schema_for_extraction.json")), "jsonschema": jsonschema}
    read = run(source, ["extract_and_validate_json"], **given)["extract_and_validate_json"]
    convert = run(files("eval/utils/convert_output.py"), ["parse_action"], **given)["parse_action"]
    return lambda text: convert(read(text))


def _autoglm(files: Files, source: str) -> Read:
    split = method(files("phone_agent/model/client.py"), "ModelClient", "_parse_response")
    read = run(source, ["parse_action"])["parse_action"]
    return lambda text: read(split(None, text)[1])


def _owl(files: Files, source: str) -> Read:
    body = [*lines(source, "if self.add_thought"), *lines(source, "dummy_action = json.loads(dummy_action)")]

    def read(text: str) -> Any:
        return _run(body, {**stand_ins(), "self": SimpleNamespace(add_thought=True), "action_response": text})["dummy_action"]

    return read


def _venus(files: Files, source: str) -> Read:
    body = lines(source, "think_text =", "conclusion_text =")
    answer = run(files("models/navigation/utils.py"), ["parse_coordinates", "_split_parameters", "parse_answer"])[
        "parse_answer"
    ]
    return lambda text: answer(_run(body, {**stand_ins(), "generated_text": text})["answer_text"])


def _venus_1_5(files: Files, source: str) -> Read:
    read = method(source, "UIVenusPolicy", "_parse_response")
    owner = SimpleNamespace(logger=logging.getLogger("makers"), runtime_context=SimpleNamespace(pred_action=[]))
    kept = ("action_type", "action_pos", "input", "app_name")

    def reading(text: str) -> Any:
        action = read(owner, {"choices": [{"message": {"content": text}}]}, 1000, 1000)[0]
        return {key: action[key] for key in kept if key in action}

    return reading


def _atlas(files: Files, source: str) -> Read:
    body = lines(source, "pred_action = pred['pred'].split('actions:")
    return lambda text: _run(body, {**stand_ins(), "pred": {"pred": text}})["pred_action"]


def _magic(files: Files, source: str) -> Read:
    body = lines(source, "result = {'STATUS': 'continue'}", "if 'tap(' in response")
    return lambda text: _run(body, {**stand_ins(), "response": text})["result"]


def _infi(files: Files, source: str) -> Read:
    body = lines(source, "pred = output", "pred_action =")
    return lambda text: _run(body, {**stand_ins(), "output": text, "job": {}, "self": SimpleNamespace(thinking=True)})[
        "pred_action"
    ]


def _genesis(files: Files, source: str) -> Read:
    extract = run(source, ["extract_json"])["extract_json"]
    body = lines(source, "if len(pred['pred'].split('action: ')) == 2")

    def read(text: str) -> Any:
        # a loop of one round, since the scorer goes on with the next step where it can read nothing
        loop = ast.parse("for _ in (1,): pass").body[0]
        assert isinstance(loop, ast.For)
        loop.body = body
        return _run([loop], {**stand_ins(), "pred": {"pred": text}, "extract_json": extract})["pred_action"]

    return read


def _evocua(files: Files, source: str) -> Read:
    read = method(source, "EvoCUAAgent", "_parse_response_s2")
    owner = SimpleNamespace(screen_size=(999, 999), coordinate_type="relative")
    return lambda text: read(owner, text, None, None, 999, 999)[1]


def _opencua(files: Files, source: str) -> Read:
    name = next(node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    parse, extract = (method(source, name, each) for each in ("parse_response", "extract_actions"))
    owner = SimpleNamespace(_maybe_normalize_coordinates=lambda lines, *rest: lines)
    return lambda text: extract(owner, parse(owner, text))


_HARNESS = """
const [code, constants, text] = JSON.parse(require("fs").readFileSync(0, "utf8"));
const load = (source, needed) => {
  const module = { exports: {} };
  new Function("require", "module", "exports", source)(needed, module, module.exports);
  return module.exports;
};
const types = load(constants, () => ({}));
const numbers = (value) => typeof value === "number";
const { parseActionVlm } = load(code, (name) => (name.includes("lodash") ? numbers : types));
console.error = () => {};
console.log(JSON.stringify(parseActionVlm(text, [1000, 1000], "bc", { width: 1080, height: 2400 }, 1, "1.5")));
"""


def _desktop(files: Files, source: str) -> Read:
    def script(typed: str) -> str:
        """A script without its types."""
        made = subprocess.run(
            ["esbuild", "--loader=ts", "--format=cjs"], input=typed, capture_output=True, text=True, check=True
        )
        return made.stdout

    code, constants = script(source), script(files("packages/ui-tars/shared/src/constants/vlm.ts"))

    def read(text: str) -> Any:
        given = json.dumps([code, constants, text])
        ran = subprocess.run(["node", "-e", _HARNESS], input=given, capture_output=True, text=True)
        if ran.returncode:
            raise RuntimeError(ran.stderr)
        actions = json.loads(ran.stdout)
        for action in actions:
            for key in ("start_coords", "end_coords"):  # the same places on the screen
                action["action_inputs"].pop(key, None)
        return [{key: action[key] for key in ("action_type", "action_inputs")} for action in actions]

    return read


def _qwen_agent(files: Files, source: str) -> Read:
    json5 = import_module("json5")

    class Item(SimpleNamespace):
        """A message's text."""

        def get_type_and_value(self) -> tuple[str, str]:
            return "text", self.text

    class Message(SimpleNamespace):
        """A message of a model."""

        function_call = None

    names = {"Message": Message, "ContentItem": Item, "List": list, "copy": import_module("copy"), "os": import_module("os")}
    roles = {"ASSISTANT": "assistant", "USER": "user", "SYSTEM": "system", "FUNCTION": "function"}
    kept = ["NousFnCallPrompt", "extract_fn", "SPECIAL_CODE_MODE", "CODE_TOOL_PATTERN"]
    prompt = run(source, kept, json5=json5, **names, **roles)["NousFnCallPrompt"]()

    def read(text: str) -> Any:
        said = Message(role="assistant", content=[Item(text=text)], reasoning_content=None, extra=None)
        made = [message.function_call for message in prompt.postprocess_fncall_messages([said]) if message.function_call]
        # as its tools do with a call's arguments
        return [{"name": call.name, "arguments": json5.loads(call.arguments)} for call in made]

    return read


def _aguvis(files: Files, source: str) -> Read:
    name = next(node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    parse, extract = (method(source, name, each) for each in ("parse_response", "extract_actions"))
    return lambda text: extract(None, parse(None, text))


def _scalecua(files: Files, source: str) -> Read:
    names = ("_extract_xy", "_extract_text", "_extract_swipe", "_scroll_page_num", "_status_from_terminate")
    others = ("reverse_direction", "_dir_from_coords", "qwen_action_transform")
    # without a resize, places stay in pixels of the image that the model sees
    transform = run(source, [*names, *others], smart_resize=None)["qwen_action_transform"]
    agent = files("evaluation/AndroidWorld/android_world/agents/seeact_v.py")
    found, commands = lines(agent, "act_m ="), lines(agent, "cmds =")

    def read(text: str) -> Any:
        given = _run(found, {**stand_ins(), "response": text})
        return [transform(command, 1, 1) for command in _run(commands, given)["cmds"]] if given["act_m"] else None

    return read


def _venus_grounding(files: Files, source: str) -> Read:
    owner = next(each.name for each in ast.parse(source).body if isinstance(each, ast.ClassDef))
    read = method(source, owner, "_parse_point")
    return lambda text: read(None, text)


def _cogagent(files: Files, source: str) -> Read:
    code = run(source, ["is_balanced", "extract_grounded_operation", "extract_operation"])
    return lambda text: code["extract_operation"](code["extract_grounded_operation"](text)[0])


def _holo(name: str) -> Callable[[Files, str], Read]:
    """A class of pydantic in a notebook, of what ``json.loads`` reads."""

    def read(files: Files, source: str) -> Read:
        cells = ("".join(cell["source"]) for cell in json.loads(source)["cells"] if cell["cell_type"] == "code")
        body = lines(next(cell for cell in cells if f"class {name}" in cell), f"class {name}")
        pydantic = import_module("pydantic")
        names = {"BaseModel": pydantic.BaseModel, "Field": pydantic.Field, "Literal": typing.Literal, "__name__": "holo"}
        action = _run(body, names)[name]
        action.model_rebuild(_types_namespace=names)
        return lambda text: action(**json.loads(text)).model_dump()

    return read


def _infi_g1(files: Files, source: str) -> Read:
    names = ("extract_and_parse_json", "point_in_polygon", "is_point_inside_element", "InfiguiG1Prompt")
    code = run(source, names)["InfiguiG1Prompt"]
    everywhere = {"x1": -math.inf, "y1": -math.inf, "x2": math.inf, "y2": math.inf}
    # their scorer gives the first of the points that it compares with a box
    return lambda text: code.calculate_metrics({}, code.extract_coordinates(text, True), everywhere)["predictions"]


def _gui_g2(files: Files, source: str) -> Read:
    example = re.search(r"```python\n(import os\nimport torch\n.*?)\n```", source, re.DOTALL)
    assert example is not None
    # on an image of one pixel, places stay in pixels of the image that the model sees
    body, given = lines(example[1], "try:", "point ="), {"input_width": 1, "input_height": 1}

    def read(text: str) -> Any:
        made = _run(body, {**stand_ins(), **given, "output_text": [text]})
        return made["point"] if made["box"] != [0, 0, 0, 0] else None

    return read


def _uground(files: Files, source: str) -> Read:
    body = lines(source, "response_text =", "x_ratio, y_ratio =")

    def read(text: str) -> Any:
        completion = SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=text))])
        made = _run(body, {**stand_ins(), "completion": completion})
        # as it goes on with them
        return [made["x_ratio"] / 1000 * 1000, made["y_ratio"] / 1000 * 1000]

    return read


def _ui_ins(files: Files, source: str) -> Read:
    body, parse = lines(source, "cut_index =", "if cut_index"), run(source, ["parse_coordinates"])["parse_coordinates"]

    def read(text: str) -> Any:
        x, y = parse(_run(body, {**stand_ins(), "response": text})["response"])
        return None if (x, y) == (-1, -1) else [x, y]

    return read


_SEECLICK, _SEECLICK_COMMIT = "njucckevin/SeeClick", "0ef37ac4d7aaf37ba7b990e3e3c3ca77e1fb8f93"
_VENUS_2 = "81945ac7c08e023eaf8f01c5831c6885dfba70a0"
_CUA, _CUA_COMMIT = "trycua/cua", "b296ec9cbf460f360cf8ea2e203c26bcc92614b0"
_VLLM = "vllm-project/vllm"
_CODER = "vllm/entrypoints/openai/tool_parsers/qwen3coder_tool_parser.py"
_MA, _MA_COMMIT = "X-PLUG/MobileAgent", "11cea575561fb7800b5fb6b6cafa56f7a91de11f"
_TARS = "bytedance/UI-TARS", "582f3a7ea5d285ee8ed9e2e84048d1ab01453c49", "codes/ui_tars/action_parser.py"
_GLM, _GLM_COMMIT = "zai-org/GLM-V", "8fc9756fd2313c6b7717bb681bed58f0694abc22"
_MAI, _MAI_COMMIT = "Tongyi-MAI/MAI-UI", "4dd07b9e910a294f001452e888514d912b96cc41"
_TO_STRUCTURE = "parse_action_to_structure_output"
_HERMES = Reader(
    _VLLM,
    "02bb669bf661df8b946121215ecb213468247b22",
    "vllm/tool_parsers/hermes_tool_parser.py",
    "Hermes2ProToolParser.extract_tool_calls",
    _hermes,
)
_MOBILE = _function(
    "parse_mobile_response", call=lambda code, text: (code["parse_mobile_response"](text) or {}).get("parsed_action")
)
_OWL_1_5 = Reader(
    _MA,
    _MA_COMMIT,
    "Mobile-Agent-v3.5/mobile_use/run_gui_owl_1_5_for_mobile.py",
    "parse_action",
    _function("parse_action", call=lambda code, text: code["parse_action"](text)),
)
READERS: dict[str, Reader] = {
    "ui_tars": Reader(*_TARS, f"{_TO_STRUCTURE} (qwen2vl)", _tars("qwen2vl", 2400, 1080)),
    "ui_tars_1_5": Reader(*_TARS, f"{_TO_STRUCTURE} (qwen25vl)", _tars("qwen25vl", 2400, 1080)),
    "ui_tars_1_5-desktop": Reader(
        "bytedance/UI-TARS-desktop",
        "239b6544a0ea69e512c9b31253edba7d8a90581d",
        "packages/ui-tars/action-parser/src/actionParser.ts",
        "parseActionVlm (V1_5)",
        _desktop,
    ),
    "qwen2_5_vl": _HERMES,
    "qwen3_vl": Reader(
        "QwenLM/Qwen-Agent",
        "31a4d36d123688581a9e9744427272b33ce940e0",
        "qwen_agent/llm/fncall_prompts/nous_fncall_prompt.py",
        "NousFnCallPrompt.postprocess_fncall_messages, with json5 for the arguments as in its tools",
        _qwen_agent,
    ),
    "qwen3_5": Reader(
        _VLLM, "1936cf3841edb9781b06c50fc4daf4bac9d3b23e", _CODER, "Qwen3CoderToolParser.extract_tool_calls", _coder
    ),
    "ui_s1": Reader(_MA, _MA_COMMIT, "UI-S1/x/data/agent/json.py", "JsonFormat.parse_response", _s1),
    "agentcpm_gui": Reader(
        "OpenBMB/AgentCPM-GUI",
        "acbaf509b8afb3f58b782486f4e8c0e33d8a486b",
        "eval/run_predict_minicpm.py",
        "extract_and_validate_json, then parse_action of eval/utils/convert_output.py",
        _cpm,
    ),
    "autoglm_phone": Reader(
        "zai-org/Open-AutoGLM",
        "6b18d7bed0a8b5696760b06f7d18065b150901a2",
        "phone_agent/actions/handler.py",
        "ModelClient._parse_response of phone_agent/model/client.py, then parse_action",
        _autoglm,
    ),
    "gui_owl": Reader(
        _MA,
        _MA_COMMIT,
        "Mobile-Agent-v3/android_world_v3/android_world/agents/gui_owl.py",
        "the lines of step that read action_response",
        _owl,
    ),
    "gui_owl_1_5": _OWL_1_5,
    "ui_venus_navi": Reader(
        "inclusionAI/UI-Venus",
        "497e2cd9b0c131e4685de23598f51e2da4dd7562",
        "models/navigation/ui_venus_navi_agent.py",
        "the lines of step that read generated_text, then parse_answer of models/navigation/utils.py",
        _venus,
    ),
    "ui_venus_1_5": Reader(
        "inclusionAI/UI-Venus",
        "c3a1442c3c4501af18c124458dbbddcbda5c2c6f",
        "Venus_framework/policy/ui_venus_policy.py",
        "UIVenusPolicy._parse_response",
        _venus_1_5,
    ),
    "gui_plus": _OWL_1_5,
    "glm_4_1v": Reader(_GLM, _GLM_COMMIT, "examples/gui-agent/glm-41v/gui_agent_41v.py", "parse_mobile_response", _MOBILE),
    "glm_4_5v": Reader(_GLM, _GLM_COMMIT, "examples/gui-agent/glm-45v/gui_agent_45v.py", "parse_mobile_response", _MOBILE),
    "os_atlas": Reader(
        "OS-Copilot/OS-Atlas",
        "bad08407ab54b5bf6c17a69fe1ced476b9494926",
        "eval/eval_scripts/android_control/evaluation_unify.py",
        "the line of evaluate that reads pred",
        _atlas,
    ),
    "mai_ui": Reader(
        _MAI,
        _MAI_COMMIT,
        "src/mai_naivigation_agent.py",
        _TO_STRUCTURE,
        _function(
            "SCALE_FACTOR",
            "parse_tagged_text",
            _TO_STRUCTURE,
            call=lambda code, text: code[_TO_STRUCTURE](text)["action_json"],
        ),
    ),
    "mai_ui-grounding": Reader(
        _MAI,
        _MAI_COMMIT,
        "src/mai_grounding_agent.py",
        "parse_grounding_response",
        _function("SCALE_FACTOR", "parse_grounding_response", call=lambda code, text: code["parse_grounding_response"](text)),
    ),
    "magicgui": Reader(
        "MagicAgent-GUI/MagicGUI",
        "48b3f9455ade5a1fe38faf71721ea276d138bf9d",
        "utils/eval/format_convert.py",
        "the lines of convert_to_template that read response",
        _magic,
    ),
    "ui_r1": Reader(
        "lll6gg/UI-R1",
        "2fe9bf00c8aae85fcedaf56eb3e2780dbfe8075e",
        "evaluation/test_androidcontrol.py",
        "extract_action, extract_coord",
        _function(
            "extract_action",
            "extract_coord",
            call=lambda code, text: [code["extract_action"](text), code["extract_coord"](text)[0]],
        ),
    ),
    "gui_r1": Reader(
        "ritzz-ai/GUI-R1",
        "d43eea2f1c52356077034ff2524642fc05e06c6a",
        "guir1/inference/inference_vllm_android.py",
        "extract_action, extract_input_text, extract_coord",
        _function(
            "extract_action",
            "extract_input_text",
            "extract_coord",
            call=lambda code, text: [
                code["extract_action"](text),
                code["extract_input_text"](text),
                code["extract_coord"](text)[0],
            ],
        ),
    ),
    "step_gui": Reader(
        "stepfun-ai/gelab-zero",
        "19465cf337effc20db25830688aeec5a72855c0a",
        "copilot_tools/parser_0920_summary.py",
        "Parser0920Summary.str2action",
        _method("Parser0920Summary", "str2action", call=lambda read, text: read(None, text)),
    ),
    "infigui_r1": Reader(
        "InfiXAI/InfiGUI-R1",
        "a4fca17809a4395ba1fe08d481bb82c790ea7236",
        "eval/android_control/android_control.py",
        "the lines of compute_scores that read output",
        _infi,
    ),
    "os_genesis": Reader(
        "OS-Copilot/OS-Genesis",
        "e9178a878de6da71a69c3f77f7e371d07324b850",
        "evaluation/android_control/ac_eval.py",
        "the lines of evaluate that read pred",
        _genesis,
    ),
    "fara": Reader(
        "microsoft/fara",
        "3f3f1fd82cc2769a6630932d1670bac7349f4a42",
        "src/fara/fara_agent.py",
        "FaraAgent._parse_thoughts_and_action",
        _method("FaraAgent", "_parse_thoughts_and_action", call=lambda read, text: read(_LOGGED, text)[1]),
    ),
    "fara1_5": Reader(
        "microsoft/fara",
        "6505fefa7137151f44ec360a6ef765eb5dd1a835",
        "src/fara/agents/fara/fara15_agent.py",
        "Fara15Agent._parse_thoughts_and_action",
        _method("Fara15Agent", "_parse_thoughts_and_action", call=lambda read, text: read(_LOGGED, text)[1]),
    ),
    "evocua": Reader(
        "meituan/EvoCUA",
        "4a0ad5fd4eb1d5b65966e1c7cc3feaa3b534eadd",
        "mm_agents/evocua/evocua_agent.py",
        "EvoCUAAgent._parse_response_s2",
        _evocua,
    ),
    "opencua": Reader(
        "xlang-ai/OpenCUA",
        "1d70f20663dcaa01f10c7fed5669887286545866",
        "evaluation/agentnetbench/agent/opencua.py",
        "parse_response, then extract_actions",
        _opencua,
    ),
    "qwen3_5-computer": Reader(
        _CUA,
        _CUA_COMMIT,
        "libs/python/agent/cua_agent/loops/qwen35.py",
        "_parse_tool_call_from_text",
        _function("_parse_tool_call_from_text", call=lambda code, text: code["_parse_tool_call_from_text"](text)),
    ),
    "ui_tars_2": Reader(
        _CUA,
        _CUA_COMMIT,
        "libs/python/agent/cua_agent/loops/uitars2.py",
        "_parse_seed_tool_calls",
        _function("_parse_seed_tool_calls", call=lambda code, text: code["_parse_seed_tool_calls"](text)),
    ),
    "aguvis": Reader(
        "xlang-ai/OpenCUA",
        "1d70f20663dcaa01f10c7fed5669887286545866",
        "evaluation/agentnetbench/agent/aguvis.py",
        "parse_response, then extract_actions",
        _aguvis,
    ),
    "scalecua": Reader(
        "OpenGVLab/ScaleCUA",
        "5d92feea9f1e14b8303ce37da45b286fb1f4d3aa",
        "evaluation/AndroidWorld/android_world/agents/utils.py",
        "the lines of seeact_v.py that read response, then qwen_action_transform",
        _scalecua,
    ),
    "seeclick": Reader(
        _SEECLICK,
        _SEECLICK_COMMIT,
        "agent_tasks/action_matching.py",
        "pred_2_format, after ast.literal_eval as in aitw_test.py",
        _function("pred_2_format", call=lambda code, text: code["pred_2_format"](ast.literal_eval(text))),
    ),
    "seeclick-grounding": Reader(
        _SEECLICK,
        _SEECLICK_COMMIT,
        "pretrain/process_utils.py",
        "pred_2_point",
        _function("pred_2_point", call=lambda code, text: code["pred_2_point"](text)),
    ),
    "gta1-grounding": Reader(
        "Yan98/GTA1",
        "81f0c4c2997cf6ad696d42f47c5480f4c856b73a",
        "src/grpo_grounding.py",
        "parse_coordinates",
        _function("parse_coordinates", call=lambda code, text: code["parse_coordinates"](text)),
    ),
    "ui_venus_1_5-grounding": Reader(
        "inclusionAI/UI-Venus",
        "c3a1442c3c4501af18c124458dbbddcbda5c2c6f",
        "models/grounding/ui_venus1_5_gd.py",
        "_parse_point",
        _venus_grounding,
    ),
    "ui_venus_2": Reader(
        "inclusionAI/UI-Venus",
        _VENUS_2,
        "models/mobile/mobile_example.py",
        "parse_response, then parse_action_call",
        _function(
            "parse_response",
            "parse_action_call",
            call=lambda code, text: code["parse_action_call"](code["parse_response"](text)[1]),
        ),
    ),
    "ui_venus_2-computer": Reader(
        "inclusionAI/UI-Venus",
        _VENUS_2,
        "models/computer/computer_example.py",
        "parse_response",
        _venus_2,
    ),
    "ui_venus_2-grounding": Reader(
        "inclusionAI/UI-Venus",
        _VENUS_2,
        "models/grounding/ui_venus2_gd.py",
        "extract_coordinates_qwen35",
        _function("extract_coordinates_qwen35", call=lambda code, text: code["extract_coordinates_qwen35"](text)),
    ),
    "cogagent": Reader(
        "THUDM/CogAgent",
        "d799e158fc19786db08d70599fa20af248be0f9d",
        "app_for_android/client_for_android.py",
        "extract_grounded_operation, then extract_operation",
        _cogagent,
    ),
    "holo1_5": Reader(
        "hcompai/hai-cookbook",
        "2ba89619bdcfe729d31649d976bdaa7b9551e216",
        "holo1_5/openai_client/invoke_localization.ipynb",
        "ClickAbsoluteAction, of what json.loads reads",
        _holo("ClickAbsoluteAction"),
    ),
    "holo2": Reader(
        "hcompai/hai-cookbook",
        "2ba89619bdcfe729d31649d976bdaa7b9551e216",
        "holo2/holo_2_localization_hosted_api.ipynb",
        "ClickCoordinates, of what json.loads reads",
        _holo("ClickCoordinates"),
    ),
    "infigui_g1": Reader(
        "InfiXAI/InfiGUI-G1",
        "22208e4d4826626731292fa08bb73ec9fc6f9b15",
        "eval/prompts.py",
        "InfiguiG1Prompt.extract_coordinates, then the first prediction of calculate_metrics",
        _infi_g1,
    ),
    "gui_g2": Reader(
        "ZJU-REAL/GUI-G2",
        "5c5c36581654364073385e37deca28f4d765aa94",
        "README.md",
        "the lines of infer that read output_text",
        _gui_g2,
    ),
    "ui_ins": Reader(
        "alibaba/UI-Ins",
        "1953bbc5200960cc8fd10a0dd06c646a66cd3ba0",
        "evaluation/eval/model.py",
        "the lines of ground_only_positive that cut the response, then parse_coordinates",
        _ui_ins,
    ),
    "se_gui": Reader(
        "YXB-NKU/SE-GUI",
        "0e2623762fc57427908c15dcbca30cf09175b547",
        "src/eval/test_grounding_r1_nothink.py",
        "extract_point_answer",
        _function("extract_point_answer", call=lambda code, text: code["extract_point_answer"](text)),
    ),
    "uground": Reader(
        "OSU-NLP-Group/UGround",
        "3a9b9f2b607eefbfc93558c1f21e6f4049944bf1",
        "grounding/uground_qwen2vl_serve.py",
        "the lines of process_question that read response_text",
        _uground,
    ),
    "qwen2_vl": Reader(
        "likaixin2000/ScreenSpot-Pro-GUI-Grounding",
        "bd8bbbb470fbc4fda2a4fa9ec90bd2572507794e",
        "models/qwen2vl.py",
        "extract_bbox",
        _function("extract_bbox", call=lambda code, text: code["extract_bbox"](text)),
    ),
    "minicpm_gui": Reader(
        "RUCBM/GUICourse",
        "a6dd4c3f0445c8b568d2c4792934a65ee4454bef",
        "utils.py",
        "parse_action_csv_string, of what follows actions:",
        _function(
            "parse_action_csv_string",
            call=lambda code, text: code["parse_action_csv_string"](text.split("actions:")[-1].strip()),
        ),
    ),
    "mimo_vl": Reader(
        "XiaomiMiMo/lmms-eval",
        "c3abd7b5380fc9148f8a8d05580d041130bece0f",
        "lmms_eval/tasks/_task_utils/gui_utils.py",
        "mimo_agent2mimo",
        _function("_get_direction", "mimo_agent2mimo", call=lambda code, text: code["mimo_agent2mimo"](text, 1, 1)),
    ),
}
"""By the name of a family's table."""


def file_at(folders: Sequence[Path], repository: str, commit: str, path: str) -> str:
    """A file of a repository at a commit; of a folder that is no clone, as it is."""
    owner, name = repository.split("/")
    for folder in folders:
        for place in (folder / f"{owner}+{name}", folder / owner / name, folder / name):
            for clone in (place / "repo", place):
                shown = (
                    subprocess.run(
                        ["git", "-c", "safe.directory=*", "-C", str(clone), "show", f"{commit}:{path}"], capture_output=True
                    )
                    if clone.is_dir()
                    else None
                )
                if shown is not None and shown.returncode == 0:
                    return shown.stdout.decode("utf-8")
                if (clone / path).is_file():
                    return (clone / path).read_text(encoding="utf-8")
    raise SystemExit(f"none of {', '.join(map(str, folders))} holds {path} of {repository} at {commit}")


def made(family: Family, folders: Sequence[Path]) -> Iterator[str]:
    """The lines of a family's table."""
    reader = READERS[family.title]
    yield json.dumps({**dict(zip(("repository", "commit", "path", "reader"), reader, strict=False))}, ensure_ascii=False)

    def files(path: str) -> str:
        return file_at(folders, reader.repository, reader.commit, path)

    read = reader.read(files, files(reader.path))
    for damage, text in drawn(family):
        row: list[Any] = [damage, text]
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                row = [*row, read(text)]
        except Exception as error:  # whatever their code raises is its result
            row = [*row, None, type(error).__name__]
        yield json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def print_differences() -> None:
    """What differs, by family and kind, with an example."""
    for family in FAMILIES:
        counts, examples = Counter[str](), dict[str, str]()
        for row in table_of(family)[1]:
            found = kind(family, row)
            counts[found] += 1
            own, other = ours(family, row), theirs(family, row)
            examples.setdefault(found, f"{row.text!r:.300}\n        here {own!r:.200}\n        there {other!r:.200}")
        print(f"\n{family.title}")
        for found, count in sorted(counts.items()):
            print(f"  {count:3} {found}" + (f": {examples[found]}" if found not in ("same", "neither") else ""))


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    if "--differences" in sys.argv:
        print_differences()
    elif "--table" in sys.argv:
        print("\n".join(map(page_row, FAMILIES)))
        print("\n".join(["", *(f"- {damage}: {why}" for damage, why in LENIENCIES.items())]))
        print("\n".join(["", *(f"- `{name}`: {why}" for name, why in NO_READER.items())]))
    else:
        for each in FAMILIES:
            each.file.write_text("\n".join(made(each, [Path(name) for name in sys.argv[1:]])) + "\n", encoding="utf-8")
