"""The sampling settings that guieval knows: their types and ranges, which are those of OpenAI-compatible servers and vLLM, and
what other engines and exports call them.

A run and a checkpoint hold them as a plain mapping of the values as given, because these are sent and fingerprinted;
:func:`check_sampling` only checks them. A name that is not known here is an error, since servers ignore most of those;
``extra`` passes it on all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from guieval.errors import nearest

UNKNOWN_SAMPLING = "unknown_sampling"
"""Type of the pydantic error for a name that cannot be given."""
_LARGEST_SEED = 2**63 - 1
_SET_BY_ENGINE = {
    "model": "use --served-model",
    "messages": "the model's adapter writes them",
    "stream": "answers are read whole",
    "n": "use --samples",
}


class SamplingSettings(BaseModel):
    """Request parameters; one that is null is not sent as a value of its own, so that the server's default counts."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)

    temperature: float | None = Field(None, ge=0, description="0 is greedy decoding")
    top_p: float | None = Field(None, gt=0, le=1, description="sample from the likeliest tokens of this total probability")
    top_k: int | None = Field(None, ge=-1, description="sample from this many likeliest tokens; -1 or 0 for all")
    min_p: float | None = Field(None, ge=0, le=1, description="least probability of a token, relative to the likeliest")
    seed: int | None = Field(None, ge=-_LARGEST_SEED - 1, le=_LARGEST_SEED, description="seed of the server's draws")
    max_tokens: int | None = Field(None, ge=1, description="tokens of an answer at most")
    max_completion_tokens: int | None = Field(None, ge=1, description="OpenAI's newer name of max_tokens")
    min_tokens: int | None = Field(None, ge=0, description="tokens of an answer at least")
    presence_penalty: float | None = Field(None, ge=-2, le=2, description="penalty on tokens that occurred")
    frequency_penalty: float | None = Field(None, ge=-2, le=2, description="penalty on tokens by how often they occurred")
    repetition_penalty: float | None = Field(None, gt=0, description="factor on tokens of prompt and answer; 1 is none")
    length_penalty: float | None = Field(None, description="of beam search")
    stop: str | list[str] | None = Field(None, description="text, or texts, that end the answer")
    stop_token_ids: list[int] | None = Field(None, description="tokens that end the answer")
    include_stop_str_in_output: bool | None = Field(None, description="keep the text that ended the answer")
    ignore_eos: bool | None = Field(None, description="go on after the end token")
    skip_special_tokens: bool | None = Field(None, description="leave special tokens out of the text")
    spaces_between_special_tokens: bool | None = Field(None, description="put spaces between special tokens")
    allowed_token_ids: list[int] | None = Field(None, description="the only tokens to sample from")
    bad_words: list[str] | None = Field(None, description="words that are never sampled")
    logit_bias: dict[str, float] | None = Field(None, description="token id to an addition to its logit")
    logprobs: bool | None = Field(None, description="return log-probabilities; their mean is recorded")
    top_logprobs: int | None = Field(None, ge=-1, description="likeliest tokens to return at each place")
    truncate_prompt_tokens: int | None = Field(None, ge=-1, description="keep this many last tokens of the prompt")
    chat_template_kwargs: dict[str, Any] | None = Field(None, description="arguments of the chat template")
    mm_processor_kwargs: dict[str, Any] | None = Field(None, description="arguments of vLLM's image processor")
    response_format: dict[str, Any] | None = Field(None, description="form of the answer, e.g. a JSON schema")
    structured_outputs: dict[str, Any] | None = Field(None, description="vLLM's constraints on the answer")
    reasoning_effort: str | None = Field(None, description="OpenAI's word for how much to think, e.g. low")
    verbosity: str | None = Field(None, description="OpenAI's word for the length of an answer, e.g. low")
    tools: list[dict[str, Any]] | None = Field(None, description="functions that the model may call")
    tool_choice: str | dict[str, Any] | None = Field(None, description="which function the model must call")
    parallel_tool_calls: bool | None = Field(None, description="more than one call in an answer")
    image_detail: Literal["low", "high", "auto"] | None = Field(None, description="detail in which OpenAI's models see images")
    priority: int | None = Field(None, description="order in vLLM's queue; lower is earlier")
    cache_salt: str | None = Field(None, description="vLLM shares its prefix cache among equal salts only")
    prompt_cache_key: str | None = Field(None, description="OpenAI shares its prompt cache among equal keys")
    service_tier: str | None = Field(None, description="OpenAI's class of service, e.g. flex")
    store: bool | None = Field(None, description="whether OpenAI keeps the answer")
    metadata: dict[str, str] | None = Field(None, description="labels that OpenAI keeps with the answer")
    user: str | None = Field(None, description="OpenAI's name for who asks")
    extra: dict[str, Any] | None = Field(None, description="parameters not listed here, sent as they are")
    extra_body: dict[str, Any] | None = Field(None, description="the same under the name in OpenAI's Python client")

    @field_validator("stop", "tool_choice", mode="wrap")
    @classmethod
    def _union(cls, value: Any, handler: Any, info: ValidationInfo) -> Any:
        try:
            return handler(value)
        except ValidationError:  # one problem for each member of the union
            texts = "text, or a list of texts"
            named = "a word, or a group that names a function"
            raise ValueError(f"expected {texts if info.field_name == 'stop' else named}") from None

    @field_validator("extra", "extra_body")
    @classmethod
    def _not_known(cls, values: dict[str, Any] | None) -> dict[str, Any] | None:
        for name, value in (values or {}).items():
            _refuse_the_engines(name, value)
            if name in SamplingSettings.model_fields:
                raise _problem(name, value, "cannot be given here: leave out 'extra', because guieval knows this setting")
        return values


def check_sampling(values: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    """A pydantic validator: refuse unknown names, and values of another type or out of range; return the values unchanged.

    The validation context may hold, under the field's name, values that were accepted before; what equals them is not
    checked, so that a run begun by an older version still opens.
    """
    kept = (info.context or {}).get(info.field_name) or {}
    new = {name: value for name, value in values.items() if name not in kept or kept[name] != value}
    for name, value in new.items():
        _refuse_the_engines(name, value)
        if name not in SamplingSettings.model_fields:
            group = "sampling" if info.field_name == "request" else info.field_name
            hint = nearest(f"{group}.{name}", [f"{group}.{known}" for known in SamplingSettings.model_fields])
            raise _problem(name, value, f"is unknown{hint}; to send it to the server as it is, use {group}.extra.{name}")
    SamplingSettings.model_validate(new)
    return values


def _refuse_the_engines(name: str, value: Any) -> None:
    if name in _SET_BY_ENGINE:
        raise _problem(name, value, f"cannot be given: {_SET_BY_ENGINE[name]}")


def _problem(name: str, value: Any, message: str) -> ValidationError:
    """An error about one name, whose message continues the name; pydantic puts the mapping's own place in front."""
    kind = PydanticCustomError(UNKNOWN_SAMPLING, "{message}", {"message": message})
    return ValidationError.from_exception_data("sampling", [InitErrorDetails(type=kind, loc=(name,), input=value)])


def request_parameters(*given: Mapping[str, Any]) -> dict[str, Any]:
    """Sampling settings as they are sent, later ones over earlier ones: the values in ``extra`` are sent next to the others."""
    sent: dict[str, Any] = {}
    for values in given:
        extra = values.get("extra")
        if isinstance(extra, Mapping) or extra is None:
            sent |= {name: value for name, value in values.items() if name != "extra"} | dict(extra or {})
        else:  # of a run that is older than the check
            sent |= values
    return sent


def _names(text: str) -> dict[str, str]:
    """``ours=theirs`` words as a mapping; a name alone is the same in both."""
    return {ours: theirs or ours for ours, _, theirs in (word.partition("=") for word in text.split())}


NATIVE = {
    "anthropic": _names("temperature top_p top_k max_tokens stop=stop_sequences tool_choice service_tier metadata"),
    "gemini": _names(
        "temperature top_p top_k seed max_tokens=max_output_tokens stop=stop_sequences presence_penalty frequency_penalty "
        "reasoning_effort=thinking_config.thinking_level"
    ),
    "openai-responses": _names(
        "temperature top_p max_tokens=max_output_tokens max_completion_tokens=max_output_tokens "
        "reasoning_effort=reasoning.effort verbosity=text.verbosity tool_choice parallel_tool_calls prompt_cache_key "
        "service_tier store metadata user"
    ),
}
"""The settings that each native API takes, and its names of them; a dot separates levels."""

NEUTRAL: dict[str, Any] = {
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "max_tokens": None,
    "min_tokens": 0,
    "seed": None,
    "stop": (),
    "stop_token_ids": (),
    "ignore_eos": False,
    "include_stop_str_in_output": False,
    "skip_special_tokens": True,
    "spaces_between_special_tokens": True,
    "logprobs": None,
    "top_logprobs": None,
}
"""The settings of a model in transformers, with vLLM's defaults."""
OF_A_CHECKPOINT = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
"""Those of them whose default a checkpoint's generation config may change."""
OPTIONS = {"temperature": "temperature", "max_tokens": "max_tokens", "top_p": "top_p", "sampling_seed": "seed"}
"""The settings that have an option of their own, by the option's name."""
EXPORTED = ("temperature", "top_p", "top_k", "max_tokens")
"""Settings for which the formats of other toolkits have a field."""
GREEDY: Mapping[str, Any] = {"temperature": 0.0}
"""The request parameters of greedy decoding."""


class Draw(NamedTuple):
    """How the next token is drawn, in the names of transformers: what the distribution is divided by, and cut to."""

    temperature: float
    top_k: int
    top_p: float
    min_p: float

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Draw | None:
        """The draw that settings ask for, all of :data:`NEUTRAL` among them; ``None`` for the likeliest token each time."""
        if values["temperature"] <= 0:
            return None
        return cls(float(values["temperature"]), max(0, values["top_k"]), float(values["top_p"]), float(values["min_p"]))


_DRAWING = {"temperature": (0.2, 0.7), "top_p": (0.1, 1), "top_k": (1, -1)}
"""Settings that leave (nearly) nothing to draw at or below the first value, and a value at which they do not."""


def is_greedy(sampling: Mapping[str, Any]) -> bool:
    """Whether request parameters ask for the likeliest token each time; a server's own defaults count as not greedy."""
    return sampling.get("temperature") == 0 or sampling.get("top_k") == 1


def greedy_because(sampling: Mapping[str, Any]) -> str:
    """The settings that make request parameters greedy, in words."""
    values = {"temperature": 0, "top_k": 1}
    return " and ".join(f"{name} {value}" for name, value in values.items() if sampling.get(name) == value)


def drawing_options(sampling: Mapping[str, Any], group: str) -> str:
    """The options of the command line that make greedy request parameters draw: all that are needed together."""
    return " ".join(
        f"--set {group}.{name}={value}"
        for name, (least, value) in _DRAWING.items()
        if isinstance(old := sampling.get(name), int | float) and 0 <= old <= least and not (name == "top_k" and old == 0)
    )
