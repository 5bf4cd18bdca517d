"""NeMo Gym: a resources server whose ``verify`` is the protocol's verdict, and the rows that it verifies.

``python -m guieval.plugins.nemo_gym_server FOLDER model=NAME bench=NAME ...`` writes a resources server (``app.py``,
``configs/guieval.yaml``) with its rows (``data/steps.jsonl``) into a folder; the settings are those of ``guieval run``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

try:
    from nemo_gym.base_resources_server import BaseRunRequest, BaseVerifyRequest, BaseVerifyResponse, SimpleResourcesServer
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    print(
        f"this needs the Python of NeMo Gym, whose package is missing here ({error}): docs/plugins/harness.md", file=sys.stderr
    )
    sys.exit(2)

from guieval.errors import GuievalError
from guieval.models import Response
from guieval.plugins.harness_steps import harness_steps
from guieval.running.config import override

APP = '''"""The protocol's verdict of a step, by guieval."""

from guieval.plugins.nemo_gym_server import GuievalResourcesServer

if __name__ == "__main__":
    GuievalResourcesServer.run_webserver()
'''
CONFIG = """\
guieval:
  resources_servers:
    guieval:
      entrypoint: app.py
      domain: agent
      verified: false
      description: Steps of a GUI benchmark, one response each, scored by a published protocol
guieval_simple_agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server: {type: resources_servers, name: guieval}
      model_server: {type: responses_api_models, name: policy_model}
      datasets:
      - {name: steps, type: example, jsonl_fpath: resources_servers/guieval/data/steps.jsonl}
"""


class StepRunRequest(BaseRunRequest):
    """A row: the step's key, and the settings with which it is found and scored."""

    key: str
    settings: dict[str, Any]


class StepVerifyRequest(StepRunRequest, BaseVerifyRequest):
    """A row with the model's response."""


class StepVerifyResponse(BaseVerifyResponse):
    """The reward is exact match; the numbers besides are for aggregate metrics."""

    key: str
    verdict: str
    reason: str
    exact_match: float
    type_match: float
    unparseable: float


class GuievalResourcesServer(SimpleResourcesServer):
    """Scores the response to a step. One that says nothing about the model is an error of its request, no reward of 0."""

    async def verify(self, body: StepVerifyRequest) -> StepVerifyResponse:
        said = [item.model_dump() for item in body.response.output if item.type in ("message", "function_call")]
        reasoned = [part.text for item in body.response.output if item.type == "reasoning" for part in item.summary]
        texts = [part.get("text") for item in said for part in item.get("content") or () if part.get("text")]
        message = {
            "role": "assistant",
            "content": "\n".join(texts),
            "reasoning": "\n".join(reasoned) or None,
            "tool_calls": [item for item in said if item["type"] == "function_call"],
        }
        sample = harness_steps(body.settings).scored(body.key, Response.of(message))
        outcome = sample.outcome
        if not sample.answered:
            raise RuntimeError(f"step {body.key} cannot be scored: {outcome.reason}")
        return StepVerifyResponse(
            **body.model_dump(exclude={"key", "settings"}),
            reward=float(outcome.exact_match),
            key=body.key,
            verdict=outcome.verdict,
            reason=outcome.reason,
            exact_match=float(outcome.exact_match),
            type_match=float(outcome.type_match),
            unparseable=float(outcome.verdict == "unparseable"),
        )


def rows(settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A row for each step: the request in the form of OpenAI's Responses, the key and the settings."""
    steps = harness_steps(settings)
    for key in steps.keys:
        body = steps.body(key)
        asked = {"input": [_item(message) for message in steps.messages(body)]}
        asked |= {name: body[name] for name in ("temperature", "top_p") if name in body}
        if "max_tokens" in body:
            asked["max_output_tokens"] = body["max_tokens"]
        yield {"responses_create_params": asked, "key": key, "settings": dict(settings)}


def _item(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message["content"]
    if not isinstance(content, str):
        content = [
            {"type": "input_text", "text": part["text"]}
            if part["type"] == "text"
            else {"type": "input_image", "image_url": part["image_url"]["url"], "detail": "auto"}
            for part in content
        ]
    return {"role": message["role"], "content": content}


def write_server(folder: Path, settings: Mapping[str, Any]) -> None:
    """Write the server's folder, which belongs into ``resources_servers/guieval`` of NeMo Gym."""
    for name in ("configs", "data"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "app.py").write_text(APP, encoding="utf-8")
    (folder / "requirements.txt").write_text("guieval\n", encoding="utf-8")
    (folder / "configs" / "guieval.yaml").write_text(CONFIG, encoding="utf-8")
    (folder / "data" / "steps.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(settings)), encoding="utf-8")


def main(words: list[str]) -> int:
    """The program; its exit code is 2 for a mistake in the settings."""
    settings: dict[str, Any] = {}
    try:
        override(settings, words[1:])
        write_server(Path(words[0]), settings)
    except (GuievalError, IndexError) as error:
        print(error if words else "usage: FOLDER model=NAME bench=NAME [SETTING=VALUE ...]", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
