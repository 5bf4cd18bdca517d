"""Inputs that people met: what servers send, files hold and trainers give, each with the outcome that is right.

The cases lie in the shared data (``field_cases``, whose README says how each kind is tried); a new one there is tried here.
"""

from __future__ import annotations

import io
import json
import threading
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from guieval.actions import Click, Point
from guieval.journal import RunFolder
from guieval.registry import list_models, load_benchmark, load_model, model_config
from guieval.rewards import open_scorer
from guieval.rewards.adapters import trl
from tests.command_line import CommandLine
from tests.model_adapters.steps import step

Case = Mapping[str, Any]


@pytest.fixture(scope="module")
def cases(shared_data: Path) -> list[Case]:
    file = shared_data / "field_cases" / "cases.jsonl"
    if not file.is_file():
        pytest.skip(f"no {file}")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def of_kind(cases: Sequence[Case], *kinds: str) -> Iterator[Case]:
    found = [case for case in cases if case["kind"] in kinds]
    assert found, f"no case of kind {' or '.join(kinds)}"
    yield from found


def unmet(printed: str, expected: Mapping[str, Any], doctor: bool = False) -> Iterator[str]:
    """What a command should have printed and did not, or should not have."""
    printed, begin = printed.casefold(), "doctor_" if doctor else ""
    some, every, never = (expected.get(f"{begin}{name}", []) for name in ("says_any", "says_all", "never_says"))
    if some and not any(word.casefold() in printed for word in some):
        yield f"says none of {some}"
    yield from (f"does not say {word!r}" for word in every if word.casefold() not in printed)
    yield from (f"says {word!r}" for word in never if word.casefold() in printed)


@contextmanager
def serving(case: Case, model: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server that gives every request the case's answer: its base URL, and the requests that it got."""
    asked: list[dict[str, Any]] = []
    given = case["input"]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, {"object": "list", "data": [{"id": model, "object": "model"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body)
            if "answer_unless_stream" in given and body.get("stream"):
                chunk = {"index": 0, "delta": {"role": "assistant", "content": given["stream_text"]}, "finish_reason": "stop"}
                event = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [chunk]}
                self._send(200, f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n".encode(), "text/event-stream")
            elif "answer_unless_stream" in given:
                self._send(*given["answer_unless_stream"])
            else:
                answer = given.get("answer") or completed("no action")
                self._send(given.get("status", 200), json.loads(json.dumps(answer).replace('"MODEL"', json.dumps(model))))

        def _send(self, status: int, value: Any, kind: str = "application/json") -> None:
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *values: Any) -> None: ...

    def completed(text: str) -> dict[str, Any]:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return {"id": "c-1", "object": "chat.completion", "created": 1, "model": "MODEL", "choices": [choice]}

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        server.server_close()


def test_servers(cases: list[Case], guieval: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Among them: a response that the server broke off, a filter, an account without credit, a key that is a common word."""
    failed = {}
    for case in of_kind(cases, "server"):
        if problems := server_problems(case, guieval, monkeypatch, tmp_path):
            failed[case["id"]] = problems
    assert not failed


def server_problems(case: Case, guieval: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    given, expected = case["input"], case["expected"]
    model, folder = given["model"], tmp_path / case["id"]
    with monkeypatch.context() as patch, serving(case, (model_config(model).hf_id or model)) as (url, asked):
        patch.setenv("OPENAI_API_KEY", given.get("key", "EMPTY"))
        limit = given.get("limit", 1)
        run = ["run", "--model", model, "--bench", "demo", "--mode", "offline", "--max-attempts", "2", "--base-url", url]
        done = guieval(*run, "--limit", limit, "--out", folder)
        requests = len(asked)
        resumed = len(asked)
        if "resume_asks" in expected:
            guieval("run", "--resume", folder, "--base-url", url)
            resumed = len(asked) - requests
    printed = done.out + done.err
    records = list(RunFolder(folder).records)
    verdicts = {record.sample.outcome.verdict for record in records}
    said = not [*unmet(printed, {"says_any": expected.get("or_says_any", ["\0"])})]
    problems = list(unmet(printed, {} if "verdict_or_says" in expected else expected))
    if "verdict" in expected and verdicts != {expected["verdict"]}:
        problems.append(f"verdicts {verdicts}")
    if "verdict_in" in expected and not (said or (verdicts and verdicts <= set(expected["verdict_in"]))):
        problems.append(f"verdicts {verdicts}")
    if "verdict_or_says" in expected and not verdicts <= set(expected["verdict_or_says"]):
        problems += unmet(printed, expected)
    if expected.get("resume_asks") and not resumed:
        problems.append("a resume asks nothing")
    if "raw_holds" in expected and not said:
        problems += [
            f"stored {record.sample.raw_response!r}"
            for record in records
            if expected["raw_holds"] not in (record.sample.raw_response or "")
        ]
    steps = sum(ref.length for ref in load_benchmark("demo").index()[:limit])
    if requests > expected.get("requests_at_most_per_step", float("inf")) * steps:
        problems.append(f"{requests} requests for {steps} steps")
    return [f"{problem}: {printed[-600:]!r}" for problem in problems]


def picture(recipe: Mapping[str, Any]) -> bytes:
    image = Image.new(recipe.get("mode", "RGB"), tuple(recipe["size"]), tuple(recipe.get("fill", (90, 120, 150))))
    exif, stream = image.getexif(), io.BytesIO()
    exif[0x0112] = recipe.get("exif_orientation", 1)
    image.save(stream, recipe["format"], exif=exif)
    return stream.getvalue()


def folder_of(case: Case, folder: Path) -> Path:
    """A folder of the format ``episodes`` with one step, changed as the case says."""
    given = case["input"]
    (folder / given.get("file", "s.png")).parent.mkdir(parents=True)
    image = picture(given.get("image", {"size": [1080, 2400], "format": "PNG"}))
    (folder / given.get("file", "s.png")).write_bytes(image)
    action = given.get("action", {"type": "CLICK", "point": given.get("point", [500, 500])})
    shown = {"screenshot": given.get("screenshot", "s.png"), "instruction": "Open it.", "action": action}
    frame = "pixels" if "point" in given else "unified"
    line = json.dumps({"episode_id": "a", "frame": frame, "instruction": "Open it.", "steps": [shown]})
    (folder / "episodes.jsonl").write_text(f"{line[:-1]}{given.get('raw_line_suffix', '')}}}\n", encoding="utf-8")
    return folder


def test_doctor(cases: list[Case], guieval: CommandLine, tmp_path: Path) -> None:
    """Turned pictures, paths of Windows, characters that cannot be seen, keys given twice."""
    failed = {}
    for case in of_kind(cases, "image", "data_row"):
        if any(name.startswith("doctor") for name in case["expected"]):
            folder = folder_of(case, tmp_path / str(len(list(tmp_path.iterdir()))))  # whose name says nothing of the case
            done = guieval("doctor", "episodes", "--data", folder)
            if problems := list(unmet(done.out + done.err, case["expected"], doctor=True)):
                failed[case["id"]] = [*problems, done.out + done.err]
    assert not failed


def test_pictures(cases: list[Case], guieval: CommandLine, tmp_path: Path) -> None:
    """The picture that a server gets: what is transparent is white."""
    failed = {}
    for case in of_kind(cases, "image"):
        if (corner := case["expected"].get("sent_corner")) is None:
            continue
        model = case["input"]["model"]
        data = folder_of(case, tmp_path / case["id"])
        with serving(case, (model_config(model).hf_id or model)) as (url, asked):
            run = ["run", "--model", model, "--bench", "episodes", "--data", data, "--mode", "offline", "--base-url", url]
            done = guieval(*run, "--out", tmp_path / f"{case['id']}-run")
            assert asked, done
        (sent,) = [
            part["image_url"]["url"]
            for message in asked[0]["messages"]
            if isinstance(message["content"], list)
            for part in message["content"]
            if part["type"] == "image_url"
        ]
        image = Image.open(io.BytesIO(b64decode(sent.partition("base64,")[2])))
        pixel = image.getpixel((3, 3))
        if "A" not in image.mode and list(pixel[:3] if isinstance(pixel, tuple) else (pixel,)) != corner:
            failed[case["id"]] = pixel
    assert not failed


def test_rewards(cases: list[Case]) -> None:
    """A call, a thought or an end token that a trainer moved: the reward reads what the evaluator reads."""
    task = step(Click(point=Point(500.0, 750.0)), targets=[(400.0, 700.0, 600.0, 800.0)])
    failed = {}
    for case in of_kind(cases, "reward"):
        scorer = open_scorer(case["input"]["model"], case["input"]["reward"])
        (reward,) = trl.reward_function(scorer)(completions=[case["input"]["completion"]], task=[task.model_dump_json()])
        if reward != case["expected"]["reward"]:
            failed[case["id"]] = reward
    assert not failed


def test_responses(cases: list[Case]) -> None:
    """What the makers' own readers take as an action."""
    task, failed = step(Click(point=Point(1.0, 1.0))), {}
    for case in of_kind(cases, "reply"):
        name = next(name for name in list_models() if model_config(name).adapter == case["input"]["adapter"])
        action = load_model(name).parse_response(task, case["input"]["text"]).action
        place = list(getattr(action, "point", ()))
        if action.type != case["expected"]["type"] or place != case["expected"].get("point", place):
            failed[case["id"]] = action
    assert not failed
