"""The chat templates: prompts to the letter, and a begun turn that a server can continue."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from guieval.data.screenshots import Screenshot
from guieval.data.shipped import config_folder
from guieval.engines.http.chat_body import chat_body
from guieval.models import ModelInput, Request
from guieval.models.written_prompts import example_episode
from guieval.registry import list_models, load_model, model_config
from tests.rows import every_row

from .steps import past, step

FILES = sorted(file.name for file in (config_folder() / "chat_templates").iterdir())
QWEN_IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"
GLM_IMAGE = "<|begin_of_image|><|image|><|end_of_image|>"
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}]},
    {"role": "assistant", "content": "<think>\nx\n</think>\n\nb"},
    {"role": "user", "content": "c"},
]
"""Not of any family: what the templates do with a past in turns, and with an image after its text."""


def refuse(message: str) -> None:
    raise TemplateError(message)


def rendered(file: str, messages: list[dict[str, Any]], **options: Any) -> str:
    """As servers render a chat template: sandboxed, with blocks trimmed."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = refuse
    source = (config_folder() / "chat_templates" / file).read_text(encoding="utf-8")
    return environment.from_string(source).render(messages=messages, **options)


def as_parts(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages as vLLM hands them to a template that goes through content lists."""
    parts = []
    for message in messages:
        content = message["content"]
        listed = [{"type": "text", "text": content}] if isinstance(content, str) else content
        parts.append({**message, "content": [part if part["type"] == "text" else {"type": "image"} for part in listed]})
    return parts


def prompt(name: str, prepared: ModelInput) -> str:
    """The prompt that a server makes of a request to the checkpoint ``name``.

    A begun turn is continued as servers do it: the prompt is cut after the last message's text, which has to stand in it to
    the letter (else the server answers 400), and after which there is nothing but the end of the turn.
    """
    images = tuple(Screenshot(b"", "png", (1080, 2400)) for _ in prepared.images)
    body = json.loads(chat_body(Request(prepared, images, {}, "id", step()), "m"))
    options = body.get("chat_template_kwargs", {})
    assert body.get("continue_final_message", False) is prepared.prefill
    if not prepared.prefill:
        options["add_generation_prompt"] = True
    found = set()
    for messages in (body["messages"], as_parts(body["messages"])):
        text = rendered(model_config(name).vllm["chat-template"], messages, **options)
        if prepared.prefill:
            (begun,) = prepared.messages[-1].parts
            assert isinstance(begun, str)
            end = text.rindex(begun) + len(begun)
            assert text[end:] in ("", "<|im_end|>\n")
            text = text[:end]
        found.add(text)
    (whole,) = found
    return whole


def texts(prepared: ModelInput) -> list[str]:
    """The texts of a request, in order."""
    return [part for message in prepared.messages for part in message.parts if isinstance(part, str)]


def test_a_usual_request_to_qwen3_vl_thinking_opens_a_thought() -> None:
    name = "qwen3-vl-8b-thinking"
    prepared = load_model(name).prepare_input(example_episode().steps[0], ())
    system, text = texts(prepared)
    assert prompt(name, prepared) == (
        f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{text}{QWEN_IMAGE}<|im_end|>\n<|im_start|>assistant\n<think>\n"
    )


@pytest.mark.parametrize(
    ("name", "thinking", "end"),
    [
        *(("glm-4.1v-9b-thinking", None, "<|assistant|>\n"), ("glm-4.5v", True, "<|assistant|>\n")),
        ("glm-4.5v", False, "/nothink<|assistant|>\n<think></think>\n"),
    ],
)
def test_a_usual_request_to_glm(name: str, thinking: bool | None, end: str) -> None:
    prepared = load_model(name, thinking=thinking).prepare_input(example_episode().steps[0], ())
    (text,) = texts(prepared)
    assert prompt(name, prepared) == f"[gMASK]<sop><|user|>\n{GLM_IMAGE}{text}{end}"


@pytest.mark.parametrize(
    ("thinking", "turn"), [(True, "<|recipient|>all\nThought: "), (False, "<|recipient|>os\n"), (None, "")]
)
def test_a_usual_request_to_aguvis_names_the_recipient_after_the_role(thinking: bool | None, turn: str) -> None:
    """As the authors' script writes it; in "self-plan" (neither on nor off) the model goes on with the recipient."""
    model = load_model("aguvis-7b")
    model.thinking = thinking  # the checkpoints' own choice is on
    prepared = model.prepare_input(example_episode().steps[0], ())
    system, text = texts(prepared)[:2]
    assert prompt("aguvis-7b", prepared) == (
        f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{QWEN_IMAGE}{text}<|im_end|>\n<|im_start|>assistant{turn}"
    )


def test_a_request_to_phi_ground_is_the_authors_text() -> None:
    task = example_episode("grounding").steps[0]
    for name, file in (("phi-ground-4b-7c", "phi_ground-grounding"), ("phi-ground-any", "phi_ground_any-grounding")):
        model = load_model(name)
        assert prompt(name, model.prepare_input(task, ())) == model.prompt(file, instruction=task.instruction)


@every_row("thought", ["I tap it.", "I tap <think>ing of </think>.", "I tap\n\n it.", "{{ I }} {% tap %}"])
@every_row(
    ("name", "thinking", "before", "after"),
    [
        ("qwen3-vl-8b-thinking", None, f"{QWEN_IMAGE}<|im_end|>\n<|im_start|>assistant\n<think>\n", "\n</think>\n\n"),
        ("glm-4.1v-9b-thinking", None, "<|assistant|>\n<think>", "</think>\n<answer>"),
        ("glm-4.5v", True, "<|assistant|>\n<think>", "</think>"),
        ("glm-4.5v", False, "/nothink<|assistant|>\n<think></think>\nMemory: None\nReason: ", "\nAction:"),
        ("aguvis-7b", True, "<|im_end|>\n<|im_start|>assistant<|recipient|>all\nThought: ", "\n"),
    ],
)
def test_a_given_thought_is_left_as_it_is(name: str, thinking: bool | None, before: str, after: str, thought: str) -> None:
    model, task = load_model(name, thinking=thinking), example_episode().steps[1]
    begun = model.prepare_fixed_thought(task, past(1), thought)
    asked = texts(begun)[-2]
    whole = prompt(name, begun)
    assert whole.endswith(f"{asked}{before}{thought}{after}")
    assert whole.count(asked) == 1


QWEN_PAST = f"<|im_start|>system\ns<|im_end|>\n<|im_start|>user\na{QWEN_IMAGE}<|im_end|>\n<|im_start|>assistant\n"
QWEN_LAST = "b<|im_end|>\n<|im_start|>user\nc<|im_end|>\n"
GLM_PAST = f"[gMASK]<sop><|system|>\ns<|user|>\na{GLM_IMAGE}"


@every_row(
    ("file", "options", "text"),
    [
        ("qwen3_vl-thinking.jinja", {}, f"{QWEN_PAST}{QWEN_LAST}"),
        ("glm_4_1v.jinja", {}, f"{GLM_PAST}<|assistant|>\n<think>\nx\n</think>\n\nb<|user|>\nc"),
        ("glm_4_5v.jinja", {}, f"{GLM_PAST}<|assistant|>\n<think></think>\nb<|user|>\nc"),
        (
            "glm_4_5v.jinja",
            {"enable_thinking": False},
            f"{GLM_PAST}/nothink<|assistant|>\n<think></think>\nb<|user|>\nc/nothink",
        ),
        ("aguvis.jinja", {}, f"{QWEN_PAST}<think>\nx\n</think>\n\n{QWEN_LAST}"),
    ],
)
def test_a_past_in_turns(file: str, options: dict[str, Any], text: str) -> None:
    assert rendered(file, CHAT, **options) == text
    assert rendered(file, as_parts(CHAT), **options) == text


def test_glm_gets_the_switch_against_thinking_once() -> None:
    asked = [{"role": "user", "content": "a/nothink"}]
    assert rendered("glm_4_5v.jinja", asked, enable_thinking=False) == "[gMASK]<sop><|user|>\na/nothink"


@every_row("file", FILES)
def test_a_template_refuses_what_it_does_not_know(file: str) -> None:
    with pytest.raises(TemplateError, match="no tools"):
        rendered(file, CHAT, tools=[{"type": "function"}])
    with pytest.raises(TemplateError, match="no role tool"):
        rendered(file, [*CHAT, {"role": "tool", "content": "d"}])
    with pytest.raises(TemplateError, match="texts and images only"):
        rendered(file, [{"role": "user", "content": [{"type": "video"}]}])


@pytest.mark.parametrize("adapter", ["glm_4_1v", "glm_4_5v", "aguvis"])
def test_every_checkpoint_of_a_family_is_served_with_its_template(adapter: str) -> None:
    configs = [config for config in map(model_config, list_models()) if config.adapter == adapter and "4.6" not in config.name]
    assert {config.vllm.get("chat-template") for config in configs} == {f"{adapter}.jinja"}
