"""The mock server: what it answers, when, which faults, and that it counts what happened."""

from __future__ import annotations

import asyncio
import json
import math
import random
import signal
import socket
import subprocess
import sys
from base64 import b64encode
from collections.abc import Sequence
from contextlib import ExitStack
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval import actions
from guieval.actions import Action, ActionSpace, Boxes, Click, LongPress, Open, Point, Press, Scroll, Stop, Type
from guieval.data.benchmark import ABCBenchmark, EpisodeRef
from guieval.engines import request_id
from guieval.errors import UsageError
from guieval.frames import PIXELS
from guieval.history import HistoryEntry
from guieval.models import ABCModel, ModelConfig, ModelInput, ParsedResponse
from guieval.playground.mock_server import HOSTILE, MALFORMED, MockServer, MockSettings, latency_of, random_action, wrong_action
from guieval.steps import Episode, EpisodeKey, StepKey, StepTaskModel
from tests.made_runs import step
from tests.programs import started
from tests.rows import every_row
from tests.waiting import PATIENCE, until


class JsonModel(ABCModel):
    """A family that writes the screen's size and the unified action as JSON."""

    action_space = ActionSpace()
    fixed_frame = PIXELS

    def __init__(self) -> None:
        super().__init__(ModelConfig(name="json", adapter="json"))

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        return ModelInput(())

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        return ParsedResponse(actions.action_from_json(json.loads(text)["action"]))

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        return json.dumps(
            {"size": task.screenshot_size, "thought": thought, "action": json.loads(actions.action_to_json(action))}
        )


class FewWords(JsonModel):
    """A family that can only click and wait."""

    action_space = ActionSpace(types=frozenset({"CLICK", "WAIT"}))


class Toy(ABCBenchmark):
    name = "toy"
    title = "Toy"
    source = "made here"
    protocol = "none"
    episodes = 40

    def index(self) -> Sequence[EpisodeRef]:
        return [EpisodeRef(EpisodeKey("toy", "", f"e{i}"), 5) for i in range(self.episodes)]

    def load(self, ref: EpisodeRef) -> Episode:
        actions: list[Action] = [Click(point=Point(100, 900)), Type(text="abc"), Scroll(point=Point(500, 500), direction="up")]
        actions += [Press(button="BACK"), Stop()]
        toy: dict[str, Any] = {"episode": ref.key.episode_id, "length": 5, "benchmark": "toy", "dataset": "toy"}
        return Episode(steps=tuple(step(action, index=i, **toy) for i, action in enumerate(actions)))


get = partial(httpx.get, timeout=PATIENCE)


def ask(server: MockServer, name: str | None = None, text: str = "hello", **options: Any) -> httpx.Response:
    headers = {} if name is None else {"X-Request-Id": name}
    return httpx.post(f"{server.base_url}/chat/completions", json={"text": text}, headers=headers, timeout=PATIENCE, **options)


def unanswered(base_url: str, name: str = "r") -> socket.socket:
    """A connection with a request whose answer nobody reads; when it is closed, the client has left."""
    address = httpx.URL(base_url)
    connection = socket.create_connection((address.host, address.port or 80), timeout=PATIENCE)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Request-Id: {name}\r\nContent-Length: 2\r\n\r\n"
    connection.sendall(head.encode() + b"{}")
    return connection


def counted(server: MockServer, name: str, number: int) -> bool:
    return bool(server.stats()[name] == number)


def sentence(answer: httpx.Response) -> str:
    content: str = answer.json()["choices"][0]["message"]["content"]
    return content


def mock(**changes: Any) -> MockServer:
    fields: dict[str, Any] = {"policy": "fixed", "reply": "a rather long reply"}
    return MockServer(MockSettings.model_validate({**fields, **changes}))


# Latency


@every_row(
    ("asked", "seconds"),
    [
        ((1, "[EP100000]", 0, 0.5, 0.6), 1.048045642713932),
        ((1, "[EP100000]", 1, 0.5, 0.6), 0.4054312830452403),
        ((7, "b|s|e|0|0", 0, 5.0, 0.6), 3.184225427109359),
        ((1, "t", 0, 2.0, 0.0), 2.0),
        ((1, "t", 0, 0.0, 0.6), 0.0),
    ],
)
def test_known_latencies(asked: tuple[int, str, int, float, float], seconds: float) -> None:
    """Values computed apart from this code, by the formula in the docstring; of seed, tag, number, mean and spread."""
    assert latency_of(*asked) == pytest.approx(seconds, rel=1e-12)


def test_latencies_add_up_by_steps_or_by_the_tag_in_their_bodies() -> None:
    names = [request_id(StepKey("b", "", episode, index), 0) for episode in ("one", "two") for index in range(3)]
    by_steps = [[(name, 0) for name in names[:3]], [(name, 0) for name in names[3:]]]
    for text, chains in (("hello", by_steps), ("[EP100000] do it", [[("[EP100000]", k) for k in range(6)]])):
        with mock(latency=0.01) as server:
            for name in names:
                ask(server, name + "~0123abcd.1", text=text)
            stats = server.stats()
        each = [sum(latency_of(1, tag, k, 0.01, 0.6) for tag, k in chain) for chain in chains]
        assert (stats["latency_sum"], stats["longest_chain"]) == pytest.approx((sum(each), max(each)))


def test_no_more_than_the_limit_are_served_at_once_and_waiting_is_no_part_of_the_latency() -> None:
    for latency, slots, count in ((600, 2, "in_flight"), (0.05, 1, "served")):
        with mock(latency=latency, sigma=0, concurrency=slots) as server, ExitStack() as clients:
            for number in range(4):
                clients.enter_context(unanswered(server.base_url, f"r{number}"))
            until(partial(counted, server, count, 4), "four requests")
            stats = server.stats()
            assert stats["max_serving"] == slots
    assert stats["latency_sum"] == pytest.approx(4 * 0.05)


# Counting


def test_what_happened_is_counted_and_logged(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    faults = ("", "500", "html", "")
    with mock(first_faults=faults, log=log) as server:
        statuses = [ask(server, "r").status_code for _ in faults]
        stats = get(server.base_url.removesuffix("/v1") + "/stats").json()
    assert statuses == [200, 500, 200, 200]
    counts = {name: stats[name] for name in ("requests", "served", "failed", "malformed", "hung", "gone", "in_flight")}
    assert counts == {"requests": 4, "served": 2, "failed": 1, "malformed": 1, "hung": 0, "gone": 0, "in_flight": 0}
    assert stats["bytes"] == 4 * len(httpx.Request("POST", "http://x", json={"text": "hello"}).content)
    assert stats["first_time"] <= stats["last_time"] and stats["cpu_seconds"] > 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["tag"], line["k"]) for line in lines] == [("r", k) for k in range(4)]
    assert [line["outcome"] for line in lines] == ["served", "failed", "malformed", "served"]


def test_a_request_without_tag_is_a_probe_and_not_counted() -> None:
    with mock(latency=30.0, sigma=0) as server:
        assert ask(server).status_code == 200
        assert server.stats()["requests"] == 0


def test_another_client_gets_answers_too_unless_they_depend_on_the_step() -> None:
    """Else a harness that sends no X-Request-Id gets the answer to a probe, which scores as a model that does nothing."""
    shown = f"{png_url((10, 20))} and a task"
    with mock() as server:
        assert sentence(ask(server, text=shown)) == "a rather long reply"
        assert server.stats()["requests"] == 1
    with referring() as server:
        refused = ask(server, text=shown)
    assert refused.status_code == 400 and "X-Request-Id" in refused.json()["error"]["message"]


def test_a_client_that_leaves_early_is_gone() -> None:
    with mock(latency=30.0, sigma=0) as server:
        with unanswered(server.base_url):
            until(lambda: server.stats()["in_flight"], "the request")
        until(lambda: not server.stats()["in_flight"], "the client's end")
        assert (server.stats()["gone"], server.stats()["served"]) == (1, 0)


def test_other_paths() -> None:
    with mock(served_models=("a", "b")) as server:
        root = server.base_url.removesuffix("/v1")
        assert [entry["id"] for entry in get(f"{server.base_url}/models").json()["data"]] == ["a", "b"]
        assert get(f"{root}/health").status_code == 200
        assert get(f"{root}/nowhere").status_code == 404


# Faults


def test_fault_rates_are_met_and_the_same_every_time() -> None:
    names = [f"r{i}" for i in range(300)]

    def statuses() -> list[int]:
        with mock(error_rate=0.2, error_status=503) as server, httpx.Client(timeout=PATIENCE) as client:
            url = f"{server.base_url}/chat/completions"
            return [client.post(url, headers={"X-Request-Id": name}).status_code for name in names]

    first = statuses()
    assert first == statuses() and set(first) == {200, 503}
    assert 0.12 < first.count(503) / len(first) < 0.28  # fixed by the seed, so this cannot flicker


def test_sticky_errors_stay_with_the_body_others_pass_and_late_ones_come_late() -> None:
    with mock(error_rate=0.5, sticky_errors=True) as server:
        seen = [{ask(server, "r", text=f"body {i}").status_code for _ in range(4)} for i in range(12)]
    assert {500} in seen and {200} in seen and {200, 500} not in seen
    with mock(error_rate=0.5) as server:
        assert {ask(server, "r").status_code for _ in range(12)} == {200, 500}
    with mock(error_rate=1.0, faults_after=2) as server:
        assert [ask(server, f"r{i}").status_code for i in range(4)] == [200, 200, 500, 500]


def test_how_long_to_wait_goes_with_busy_responses() -> None:
    for status in (429, 503):
        with mock(error_rate=1.0, error_status=status, retry_after="3") as server:
            answer = ask(server, "r")
        assert (answer.status_code, answer.headers["retry-after"]) == (status, "3")
    with mock(error_rate=1.0, error_status=429, retry_after_date=30.0) as server:
        answer = ask(server, "r")
    ahead = parsedate_to_datetime(answer.headers["retry-after"]) - parsedate_to_datetime(answer.headers["date"])
    assert 30.0 <= ahead.total_seconds() <= 45.0  # it is made in whole seconds, and a moment before the answer's


def test_every_malformed_kind_is_malformed_in_its_way() -> None:
    with mock(first_faults=MALFORMED) as server:
        answers = dict(zip(MALFORMED, [ask(server, "r") for _ in MALFORMED], strict=True))
    assert {answer.status_code for answer in answers.values()} == {200}
    with pytest.raises(ValueError, match=r"delimiter|Unterminated|Expecting"):
        answers["cut-json"].json()
    assert answers["cut-json"].headers["content-type"] == "application/json"
    assert answers["html"].text.startswith("<html>")
    assert answers["null-content"].json()["choices"][0]["message"]["content"] is None
    assert answers["empty-choices"].json()["choices"] == []
    assert sentence(answers["cut-text"]) == "a rather "


def test_a_hostile_answer_is_one() -> None:
    assert not set(HOSTILE) & set(MockSettings().malformed_kinds)  # and comes only when named
    with mock(first_faults=("reset", "gzip", "gzip-bomb", "flood", "absurd-numbers")) as server:
        with pytest.raises(httpx.ReadError, match="reset"):
            ask(server, "r")
        packed = ask(server, "r")
        assert packed.headers["content-encoding"] == "gzip" and sentence(packed) == "a rather long reply"
        url, headers = f"{server.base_url}/chat/completions", {"X-Request-Id": "r"}
        with httpx.stream("POST", url, json={}, headers=headers, timeout=PATIENCE) as bomb:
            sent = sum(map(len, bomb.iter_raw()))
        assert sent < 300_000 and bomb.headers["content-encoding"] == "gzip"
        assert len(ask(server, "r").content) > 8 * 1024 * 1024
        whole = ask(server, "r")
        assert sentence(whole) == "a rather long reply"
        assert whole.json()["usage"] == {"prompt_tokens": -(2**62), "completion_tokens": 2**64 - 1}
        assert whole.json()["choices"][0]["logprobs"]["content"][-1]["logprob"] == 10**400
        assert server.stats()["malformed"] == 5


def test_an_answer_that_drips_is_whole_at_once_but_does_not_end() -> None:
    with mock(first_faults=("drip",)) as server:
        url, headers = f"{server.base_url}/chat/completions", {"X-Request-Id": "r"}
        with httpx.stream("POST", url, json={}, headers=headers, timeout=PATIENCE) as answer:
            pieces = answer.iter_raw()
            first = next(pieces)
            assert json.loads(first)["choices"] and [next(pieces).strip() for _ in range(5)] == [b""] * 5
        assert sentence(ask(server, "r")) == "a rather long reply"


def test_an_answer_sent_twice_is_two_responses() -> None:
    with mock(first_faults=("twice",)) as server, unanswered(server.base_url) as connection:
        received = b""
        while received.count(b"a rather long reply") < 2 and (data := connection.recv(65536)):
            received += data
    assert received.count(b"HTTP/1.1 200 OK") == received.count(b"a rather long reply") == 2


def test_a_wrong_key_model_or_length_is_refused() -> None:
    with mock(api_key="right", check_model=True, served_models=("m",), longest_body=200) as server:

        def status(key: str, **body: str) -> int:
            headers = {"X-Request-Id": "r", "Authorization": f"Bearer {key}"}
            return httpx.post(f"{server.base_url}/chat/completions", json=body, headers=headers, timeout=PATIENCE).status_code

        assert (status("right", model="m"), status("wrong", model="m"), status("right", model="other")) == (200, 401, 404)
        assert status("right", model="m", text="x" * 200) == 400
        assert get(f"{server.base_url}/models").status_code == 401
        assert get(f"{server.base_url}/models", headers={"Authorization": "Bearer right"}).status_code == 200


def test_a_hanging_server_still_stops() -> None:
    with ExitStack() as client, mock(hang_rate=1.0) as server:
        client.enter_context(unanswered(server.base_url))
        until(lambda: server.stats()["hung"] == 1, "the request")


# Policies


def png_url(size: tuple[int, int]) -> str:
    header = b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4, "big") + b"IHDR" + size[0].to_bytes(4, "big") + size[1].to_bytes(4, "big")
    return "data:image/png;base64," + b64encode(header + bytes(100)).decode()


def test_centre_clicks_the_middle_of_the_last_screen() -> None:
    with MockServer(MockSettings(policy="centre"), model=JsonModel()) as server:
        texts = ("hello", "data:image/png;base64,???", f"{png_url((10, 20))} then {png_url((333, 777))}")
        answers = [json.loads(sentence(ask(server, "r", text=text))) for text in texts]
    assert [answer["size"] for answer in answers] == [[1080, 2400], [1080, 2400], [333, 777]]
    assert actions.action_from_json(answers[-1]["action"]) == Click(point=Point(500, 500))


def test_random_answers_are_valid_and_depend_on_step_and_seed_only() -> None:
    def answers(seed: int) -> list[str]:
        with MockServer(MockSettings(policy="random", seed=seed), model=JsonModel()) as server:
            return [sentence(ask(server, f"r{i}")) for i in range(30)]

    first = answers(1)
    assert first == answers(1) != answers(2)
    assert len({actions.action_from_json(json.loads(text)["action"]).type for text in first}) > 4


spaces = st.builds(ActionSpace, types=st.sets(st.sampled_from(actions.ACTION_TYPES), min_size=1).map(frozenset))


@given(space=spaces, seed=st.integers())
def test_a_random_action_is_in_the_space(space: ActionSpace, seed: int) -> None:
    assert random_action(space, random.Random(seed)) in space


def referring(model: ABCModel | None = None, **settings: Any) -> MockServer:
    return MockServer(MockSettings(policy="reference", **settings), model=model or JsonModel(), benchmark=Toy(Path()))


def reference_run(accuracy: float, model: ABCModel, seed: int = 1) -> list[bool]:
    """Whether each of the toy benchmark's steps was answered with its label."""
    right = []
    with referring(model, accuracy=accuracy, seed=seed) as server, httpx.Client(timeout=PATIENCE) as client:
        for task in (task for episode in Toy(Path()) for task in episode.steps):
            headers = {"X-Request-Id": request_id(task.key, 0) + "~0123abcd.1"}
            answer = client.post(f"{server.base_url}/chat/completions", headers=headers)
            right.append(model.parse_response(task, sentence(answer)).action == task.action)
    return right


def test_reference_is_right_as_often_as_asked() -> None:
    assert all(reference_run(1.0, JsonModel())) and not any(reference_run(0.0, JsonModel()))
    some = reference_run(0.7, JsonModel())
    assert 0.6 < sum(some) / len(some) < 0.8
    assert reference_run(0.7, JsonModel()) == some != reference_run(0.7, JsonModel(), seed=2)


def test_a_family_without_words_for_the_reference_answers_something_wrong() -> None:
    assert [sum(reference_run(1.0, FewWords())[index::5]) for index in range(5)] == [Toy.episodes, 0, 0, 0, 0]


def test_a_reference_is_drawn_for_each_step_and_sample_and_stays_on_a_retry() -> None:
    """An [EP] tag in the body names the episode alone; the draw must still be one per step and sample."""
    names = [request_id(StepKey("toy", "", f"e{i}", 1), sample) for i in range(8) for sample in range(3)]
    with referring(accuracy=0.5) as server:
        found = [[sentence(ask(server, f"{name}~0123abcd.{k}", text="[EP1]")) for name in names] for k in range(2)]
    assert found[0] == found[1] and len(set(found[0])) > 1


def test_a_step_without_reference_is_refused() -> None:
    names = ("r", request_id(StepKey("toy", "", "nowhere", 0), 0), request_id(StepKey("toy", "", "e0", 5), 0))
    with referring() as server:
        answers = [ask(server, name) for name in names]
    assert [answer.status_code for answer in answers] == [400] * 3
    assert all("step" in answer.json()["error"]["message"] for answer in answers)


examples = st.sampled_from(ActionSpace().examples)
box_lists = st.lists(
    st.tuples(*[st.floats(0, 1000)] * 4).map(lambda b: (min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]), max(b[1], b[3]))),
    max_size=5,
)


@given(action=examples, alternatives=st.lists(examples, max_size=2), boxes=box_lists, draw=st.floats(0, 1, exclude_max=True))
def test_a_wrong_action_differs_from_every_right_one(
    action: Action, alternatives: list[Action], boxes: list[tuple[float, float, float, float]], draw: float
) -> None:
    task = step(action, alternatives=tuple(alternatives), targets=Boxes(boxes))
    wrong = wrong_action(task, ActionSpace(), draw)
    assert wrong in ActionSpace()
    for right in (action, *alternatives):
        match wrong, right:
            case (Click() | LongPress(), Click() | LongPress()):
                assert math.dist(wrong.point, right.point) > 140
            case Click(), Open():
                assert isinstance(action, Click)  # a far click may be the wrong target, never the other type
            case _ if wrong.type != right.type:
                pass
            case Scroll(), Scroll():
                assert wrong.direction != right.direction
            case Press(), Press():
                assert wrong.button != right.button
            case Type(), Type():
                assert not set(wrong.text) & set(right.text) - {" "} or wrong.text not in right.text
            case Open(), Open():
                assert wrong.app != right.app
            case _:
                raise AssertionError(f"{wrong} is of the right type and has no target to be wrong about")


def test_a_wrong_click_leaves_the_target_box_or_is_far_from_what_is_to_be_held() -> None:
    only_clicks = ActionSpace(types=frozenset({"CLICK"}))
    boxes = Boxes([(0, 0, 1000, 1000), (0, 0, 600, 600)])
    outside = wrong_action(step(Click(point=Point(300, 300)), targets=boxes), only_clicks, 0.9)
    assert isinstance(outside, Click) and max(outside.point) > 600
    far = wrong_action(step(LongPress(point=Point(300, 300))), only_clicks, 0.1)
    assert isinstance(far, Click) and math.dist(far.point, (300, 300)) > 140


def test_a_script_is_looked_up_by_sample_step_tag_or_star(tmp_path: Path) -> None:
    key = StepKey("b", "s", "e|1", 2)
    script = tmp_path / "script.jsonl"
    entries = [
        {"key": request_id(key, 1), "reply": "by sample"},
        {"key": request_id(key, 0).rpartition("|")[0], "reply": "by step", "reasoning": "hm"},
        {"key": "b/s/e|1#3", "reply": "by printed key"},
        {"key": "[EP7]", "reply": "by tag"},
    ]
    script.write_text("\n".join(map(json.dumps, entries)) + "\n\n")
    with mock(policy="script", script=script) as server:
        assert sentence(ask(server, request_id(key, 1))) == "by sample"
        first = ask(server, request_id(key, 0))
        assert (sentence(first), first.json()["choices"][0]["message"]["reasoning_content"]) == ("by step", "hm")
        assert sentence(ask(server, request_id(key._replace(step_index=3), 0))) == "by printed key"
        assert sentence(ask(server, "other", text="[EP7]")) == "by tag"
        missing = ask(server, "other")
        assert (missing.status_code, missing.json()["error"]["message"]) == (400, "the script has no response for 'other'")
    script.write_text('{"key": "*", "reply": "whatever"}')
    with mock(policy="script", script=script) as server:
        assert sentence(ask(server, "other")) == "whatever"


@every_row("line", ["{", '{"key": "a"}', '{"key": "a", "reply": 3}'])
def test_a_damaged_script_is_named(line: str, tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text('{"key": "a", "reply": "b"}\n' + line)
    with pytest.raises(UsageError, match=r"script\.jsonl, line 2"):
        mock(policy="script", script=script)


@every_row(
    ("settings", "words"),
    [
        ({"policy": "script"}, "needs a script"),
        ({"policy": "script", "script": "/no/such"}, "cannot be read"),
        ({"policy": "centre"}, "needs a model"),
        ({"policy": "reference"}, "needs a model"),
    ],
)
def test_what_a_policy_needs_is_reported(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        mock(**settings)
    with pytest.raises(UsageError, match="needs a benchmark"):
        MockServer(MockSettings(policy="reference"), model=JsonModel())


# Running it


def test_a_taken_port_is_a_usage_error() -> None:
    with mock() as server:
        port = int(server.base_url.removesuffix("/v1").rpartition(":")[2])
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}"):
            mock(port=port)


def test_it_runs_inside_an_event_loop() -> None:
    async def main() -> str:
        async with mock() as server, httpx.AsyncClient(timeout=PATIENCE) as client:
            answer = await client.post(f"{server.base_url}/chat/completions", headers={"X-Request-Id": "r"})
            return sentence(answer)

    assert asyncio.run(main()) == "a rather long reply"


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_serve_prints_its_url_and_ends_cleanly_on_ctrl_c() -> None:
    settings = "policy='fixed', reply='hi', hang_at=(('h', 0), ('h', 1))"
    code = f"from guieval.playground.mock_server import *; serve(MockSettings({settings}))"
    with started([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        answer = httpx.post(f"{url}/chat/completions", headers={"X-Request-Id": "r"}, timeout=PATIENCE)
        assert sentence(answer) == "hi"
        stats = url.removesuffix("/v1") + "/stats"
        with unanswered(url, "h"):
            until(lambda: get(stats).json()["hung"], "the request", running=process)
        until(lambda: not get(stats).json()["in_flight"], "the client's end", running=process)
        with unanswered(url, "h"):  # another one, which is there at the end
            until(lambda: get(stats).json()["hung"] == 2, "the request", running=process)
            process.send_signal(signal.SIGINT)
            rest, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, rest, errors) == (0, "", "")
