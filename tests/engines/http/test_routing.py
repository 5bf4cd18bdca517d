"""Several servers: where requests go, what happens when one is killed and comes back, and the figures that tell of it."""

from __future__ import annotations

import asyncio
import contextlib
import random
import selectors
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import pytest

from guieval.engines import describe_endpoint
from guieval.engines.http.chat_completions import OpenAIEngine
from guieval.engines.http.connections import Answer, Connections
from guieval.engines.http.routing import HOMES, Router, Server
from guieval.errors import EngineError, FatalEngineError
from guieval.models import Request, Response
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.settings import Server as ServerSettings
from guieval.steps import Usage
from tests.engines.asking import Clock, Sleeps, Small, ask, engine_for, in_a_loop, make_request, make_task, mock
from tests.outage import reserved_port

T = TypeVar("T")


# The router alone: no network, a clock that only the test moves


class Routed:
    """A router over servers named a, b, c; ``well`` is what health checks find, ``checks`` which servers were asked."""

    def __init__(self, names: str = "abc") -> None:
        self.clock = Clock()
        self.well: dict[str, bool] = dict.fromkeys(names, True)
        self.checks: list[str] = []
        servers = [Server(Connections(name, trust_env=False, verify_tls=True)) for name in names]
        self.router = Router(servers, self._check, backoff=1.0, max_backoff=8.0, clock=self.clock)
        self.servers = {server.url: server for server in servers}

    async def _check(self, server: Server) -> bool:
        self.checks.append(server.url)
        return self.well[server.url]

    def send(self, key: str | None = None, avoid: Server | None = None) -> Server:
        server = self.router.pick(key, avoid=avoid)
        self.router.sent(server)
        return server

    def answer(self, server: Server, seconds: float = 1.0) -> None:
        self.router.answered(server, seconds, None)
        self.router.over(server)

    def fail(self, server: Server, *, gone: bool = False, busy: bool = False) -> None:
        self.router.failed(server, gone=gone, busy=busy)
        self.router.over(server)


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_the_least_loaded_server_is_next() -> None:
    routed = Routed()
    sent = [routed.send() for _ in range(30)]
    assert Counter(server.url for server in sent) == {"a": 10, "b": 10, "c": 10}
    for server in sent:
        if server.url == "b":
            routed.answer(server)
    assert [routed.send().url for _ in range(9)] == ["b"] * 9


def test_an_episode_stays_until_its_server_is_half_again_as_busy_as_the_mean() -> None:
    routed = Routed("ab")
    homes = Counter(routed.send("one").url for _ in range(40))
    # the mean of n requests on two servers is n / 2; above ceil(1.5 * mean) the other one takes over
    assert sorted(homes.values()) == [10, 30] or max(homes.values()) <= 30
    assert max(server.in_flight for server in routed.router.servers) <= 30


def test_an_episode_goes_back_to_its_server() -> None:
    routed = Routed()
    for _ in range(20):
        chosen = {key: routed.send(key) for key in "pqrstu"}
        for server in chosen.values():
            routed.answer(server)
        assert {key: routed.router.pick(key) for key in "utsrqp"} == chosen


def test_the_homes_of_many_episodes_do_not_fill_the_memory() -> None:
    routed = Routed("ab")
    for number in range(HOMES + 500):
        routed.answer(routed.send(str(number)))
    assert len(routed.router._homes) == HOMES  # nothing else shows it


@in_a_loop
async def test_a_server_that_is_gone_is_checked_then_tried_then_used() -> None:
    routed = Routed("ab")
    first = routed.send()
    routed.fail(first, gone=True)
    routed.well[first.url] = False
    assert routed.send() is not first
    await settle()
    assert routed.checks == [first.url], "a lost connection may mean nothing: the first check is at once"
    for wait in (1.0, 2.0, 4.0, 8.0, 8.0):  # then ever later
        assert {routed.send() is first for _ in range(4)} == {False}
        await settle()
        before = len(routed.checks)
        routed.clock.now += wait - 0.01
        routed.send()
        await settle()
        assert len(routed.checks) == before
        routed.clock.now += 0.02
        routed.send()
        await settle()
        assert len(routed.checks) == before + 1
    routed.well[first.url] = True
    routed.clock.now += 8.0
    assert routed.send() is not first
    await settle()
    trial = routed.send()
    assert trial is first, "well again, and idle"
    assert {routed.send() is first for _ in range(4)} == {False}, "but it gets one request at a time"
    routed.answer(trial)
    assert [routed.send() is first for _ in range(4)] == [True] * 4
    await routed.router.close()


@in_a_loop
async def test_a_trial_that_fails_is_the_end_of_it() -> None:
    routed = Routed("ab")
    first = routed.send()
    routed.fail(first, gone=True)
    routed.send()
    await settle()
    trial = routed.send()
    assert trial is first
    routed.fail(trial)
    assert {routed.send() is first for _ in range(5)} == {False}
    await routed.router.close()


@in_a_loop
async def test_three_failures_in_a_row_are_too_many_but_being_busy_is_no_failure() -> None:
    routed = Routed("ab")
    a, b = routed.router.servers
    for _ in range(10):
        routed.router.sent(a)
        routed.fail(a, busy=True)
    for _ in range(2):
        routed.router.sent(a)
        routed.fail(a)
    assert a.takes_work
    routed.router.sent(a)
    routed.answer(a)
    for _ in range(3):
        assert a.takes_work
        routed.router.sent(a)
        routed.fail(a)
    assert not a.takes_work and routed.router.another_is_up(a) and not routed.router.another_is_up(b)
    await routed.router.close()


def test_a_retry_goes_elsewhere_if_it_can() -> None:
    routed = Routed("ab")
    home = routed.send("e")
    routed.fail(home)
    assert routed.send("e", avoid=home) is not home
    alone = Routed("a")
    assert alone.send("e", avoid=alone.router.servers[0]) is alone.router.servers[0]


def test_a_server_that_asks_to_be_left_alone_is_while_another_can_do_the_work() -> None:
    routed = Routed("ab")
    home = routed.send("e")
    other = next(server for server in routed.router.servers if server is not home)
    routed.router.failed(home, gone=False, busy=True, quiet=30.0)
    routed.router.over(home)
    assert [routed.send(key) for key in ("e", "f", "g", None)] == [other] * 4
    assert routed.router.quiet_for() == 0.0
    routed.router.failed(other, gone=False, busy=True, quiet=10.0)
    assert routed.router.quiet_for() == 10.0, "the first of the two that may be asked again"
    assert routed.send(avoid=other) is home, "whom to ask is not to be nobody"
    routed.clock.now += 10.0
    assert routed.send(avoid=other) is other
    routed.clock.now += 20.0
    assert routed.send("h") is home


@in_a_loop
async def test_when_all_are_gone_they_are_asked_in_turn() -> None:
    routed = Routed()
    routed.well = dict.fromkeys("abc", False)
    for server in routed.router.servers:
        routed.router.sent(server)
        routed.fail(server, gone=True)
    last = routed.send("e")
    tried = [last.url]
    for _ in range(6):
        routed.fail(last, gone=True)
        await settle()
        last = routed.send("e", avoid=last)
        tried.append(last.url)
    assert all(one != other for one, other in pairwise(tried))
    routed.fail(last, gone=True)
    routed.router.sent(last)
    routed.answer(last)
    assert routed.send("e") is last, "a server that answers is up"
    await routed.router.close()


def test_the_figures_are_those_of_a_hand_count() -> None:
    routed = Routed("ab")
    a, _ = routed.router.servers
    for number in range(100):
        routed.router.sent(a, again=number < 7)
        routed.clock.now += 0.5
        routed.router.answered(a, (number + 1) / 100, Usage(prompt_tokens=10, completion_tokens=2))
        routed.router.over(a)
        routed.clock.now += 0.5
    routed.router.sent(a)
    routed.router.failed(a, gone=False)
    routed.router.over(a)
    busy, idle = routed.router.stats()
    assert (busy.requests, busy.answered, busy.failed, busy.retries, busy.in_flight) == (101, 100, 1, 7, 0)
    assert busy.seconds == pytest.approx(50.5) and busy.seconds_mean == pytest.approx(0.505)
    assert busy.seconds_p95 is not None and 0.95 <= busy.seconds_p95 <= 0.95 * 1.02
    assert (busy.prompt_tokens, busy.completion_tokens) == (1000, 200)
    assert busy.busy == pytest.approx(0.5)
    assert (idle.requests, idle.seconds_p95, idle.busy) == (0, None, 0.0)
    assert describe_endpoint(busy) == (
        "a: 101 requests, 100 answered, 1 failed, 7 retries; 0.51 s mean, 0.96 s p95; 1,000 tokens in, 200 out; "
        "busy 50 % of the time"
    )
    assert busy.to_json()["seconds_mean"] == busy.seconds_mean


# Through the engine, against mock servers


@contextlib.contextmanager
def mocks(*changes: dict[str, Any]) -> Iterator[list[MockServer]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(mock(**change)) for change in changes]


def engine_over(servers: Sequence[MockServer], **changes: Any) -> OpenAIEngine:
    return engine_for(*(server.base_url for server in servers), **{"sleep": asyncio.sleep, "backoff": 0.1, **changes})


async def walk(
    engine: OpenAIEngine, episodes: dict[str, list[Request]], at_once: int, on_reply: Callable[[int], Any] = lambda done: None
) -> list[Response]:
    """Ask for the steps of every episode one after the other, ``at_once`` episodes at a time."""
    left = list(episodes.values())
    replies: list[Response] = []

    async def work() -> None:
        while left:
            for request in left.pop():
                replies.append(await engine.generate(request))
                on_reply(len(replies))

    try:
        await asyncio.gather(*(work() for _ in range(at_once)))
    finally:
        await engine.close()
    return replies


@pytest.fixture
def episodes() -> dict[str, list[Request]]:
    draw = random.Random(4)
    return {
        f"e{number}": [make_request("x", task=make_task(f"e{number}", step)) for step in range(draw.randint(3, 15))]
        for number in range(80)
    }


class Idle(selectors.DefaultSelector):
    """For an event loop whose clock jumps to what comes next as soon as nothing is left to do, however busy the machine is."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += max(0.0, timeout or 0.0)
        return super().select(0)

    def loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.SelectorEventLoop(self)
        loop.time = lambda: self.now  # type: ignore[method-assign]
        return loop


def at_idle_times(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=Idle().loop) as runner:
        return runner.run(work)


SECONDS = {
    **dict.fromkeys(("http://one/v1", "http://two/v1", "http://three/v1"), 0.02),
    **{"http://slow/v1": 0.2, "http://hangs/v1": 1e9},
}
"""What a server takes for an answer on average."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> defaultdict[str, Counter[str]]:
    """How many requests of each episode each server got; they answer after a drawn time of the event loop's own clock."""
    seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
    draw = random.Random(8)

    async def answer(connections: Connections, method: str, url: str, headers: Mapping[str, str], *more: Any) -> Answer:
        if method == "GET":
            return Answer(200, {}, b"{}")
        seen[headers["X-Request-Id"].split("|")[2]][connections.url] += 1
        await asyncio.sleep(SECONDS[connections.url] * draw.lognormvariate(-0.18, 0.6))
        return Answer(200, {}, b'{"choices": [{"message": {"content": "the answer"}}]}')

    monkeypatch.setattr(Connections, "exchange", answer)
    return seen


THREE = ServerSettings(base_urls=("http://one/v1", "http://two/v1", "http://three/v1"), served_model="m")


@pytest.mark.parametrize("at_once", [False, True])
def test_an_episode_stays_together(
    at_once: bool, episodes: dict[str, list[Request]], asked: defaultdict[str, Counter[str]]
) -> None:
    """All are asked, most of them where most of their episode went, and yet all servers are kept busy."""
    steps = {request.request_id: [request] for each in episodes.values() for request in each}
    at_idle_times(walk(OpenAIEngine(THREE), steps if at_once else episodes, at_once=48 if at_once else 24))
    assert {name: counts.total() for name, counts in asked.items()} == {name: len(each) for name, each in episodes.items()}
    served = sum(asked.values(), Counter())
    assert sum(max(counts.values()) for counts in asked.values()) > 0.95 * served.total()
    assert len(served) == 3 and max(served.values()) < 1.5 * min(served.values())


def test_what_one_server_asks_for_does_not_hold_up_what_another_can_do() -> None:
    sleeps = Sleeps()
    with mocks({"error_rate": 1.0, "error_status": 429, "retry_after": "40"}, {}) as (busy, free):
        engine = engine_over([busy, free], backoff=0.5, sleep=sleeps)
        requests = {name: [make_request("x", task=make_task(name, step)) for step in range(3)] for name in "abcdefghi"}
        assert len(asyncio.run(walk(engine, requests, at_once=1))) == 27
        assert busy.stats()["requests"] == 1 and free.stats()["served"] == 27
    assert len(sleeps.seconds) == 1 and sleeps.seconds[0] <= 0.5


def test_a_request_whose_server_is_gone_heeds_what_the_other_asked_for() -> None:
    sleeps = Sleeps()
    with mocks({"first_faults": ("429",), "retry_after": "30"}) as (busy,), reserved_port() as port:
        urls = (busy.base_url, f"http://127.0.0.1:{port}/v1")
        reply = ask(engine_for(*urls, max_attempts=2, backoff=0.1, sleep=sleeps), make_request("x"))
    assert reply.attempts == 2, "that the other one is gone is not counted"
    first, second = sleeps.seconds
    assert first <= 0.1 and 20.0 < second <= 30.1


def test_when_every_server_asks_to_be_left_alone_the_first_to_be_ready_is_waited_for() -> None:
    sleeps = Sleeps()
    busy = [{"error_rate": 1.0, "error_status": 503, "retry_after": after} for after in ("50", "20")]
    with mocks(*busy) as servers, pytest.raises(EngineError, match="after 3 tries"):
        ask(engine_over(servers, max_attempts=3, sleep=sleeps), make_request("x"))
    assert sleeps.seconds[0] <= 0.1 and 10.0 < sleeps.seconds[1] <= 20.2, "20 s, whichever of the two was asked first"


def test_a_slow_server_gets_less(episodes: dict[str, list[Request]], asked: defaultdict[str, Counter[str]]) -> None:
    at_idle_times(walk(engine_for("http://slow/v1", "http://one/v1"), episodes, at_once=8))
    served = sum(asked.values(), Counter())
    assert served["http://slow/v1"] < 0.5 * served["http://one/v1"]


def test_a_server_killed_and_restarted_costs_nothing(episodes: dict[str, list[Request]]) -> None:
    with mocks({"latency": 0.05}, {"latency": 0.05}) as others, reserved_port() as port:
        settings = MockSettings(policy="fixed", reply="the answer", latency=0.05, port=port)
        first, second = MockServer(settings), MockServer.__new__(MockServer)
        first.start()
        served: list[int] = []

        def kill_and_restart(done: int) -> None:
            nonlocal second
            if done == 150:
                first.stop()
                served.append(first.stats()["served"])
            if done == 350:
                second = MockServer(settings)
                second.start()

        engine = engine_over([first, *others], max_attempts=1, backoff=0.05, max_backoff=0.1)
        replies = asyncio.run(walk(engine, episodes, 24, kill_and_restart))
        try:
            assert len(replies) == sum(map(len, episodes.values()))
            assert {(reply.text, reply.attempts) for reply in replies} == {("the answer", 1)}, "no failure while another is up"
            killed, *_ = engine.stats()
            again = second.stats()["served"]
            assert served[0] > 20 and again > 20, "it had work before, and after it came back"
            assert served[0] + again - 24 <= killed.answered <= served[0] + again, "but for answers cut off on their way"
            assert killed.failed >= 1 and not killed.resting
            assert sum(stats.answered for stats in engine.stats()) == len(replies)
            assert sum(stats.retries for stats in engine.stats()) == killed.failed
        finally:
            second.stop()


def test_a_server_that_hangs_is_left_alone(asked: defaultdict[str, Counter[str]]) -> None:
    requests = {f"e{number}": [make_request("x", task=make_task(f"e{number}"))] for number in range(60)}
    urls = ("http://hangs/v1", "http://one/v1")
    engine = engine_for(*urls, backoff=30.0, max_backoff=60.0, sleep=lambda seconds: asyncio.sleep(0))
    assert len(at_idle_times(walk(engine, requests, at_once=8))) == 60
    assert 0 < sum(asked.values(), Counter())["http://hangs/v1"] < 20


@pytest.mark.parametrize("broken", ["404", "503"])
@in_a_loop
async def test_a_server_without_a_health_page_is_known_by_its_models(broken: str) -> None:
    """What the check makes of /health."""
    dropped = "/v1/chat/completions"
    # where it is well by its models it is tried once more, and then rests; where /health fails it rests at once
    asked_for = [dropped, *(["/health", "/v1/models", dropped] if broken == "404" else ["/health"])]

    ill = Small(lambda path: None if path == dropped else f"{broken} X" if path == "/health" else "200 X")
    with mocks({}) as (other,):
        async with ill.serving():
            engine = engine_for(ill.url, other.base_url, sleep=asyncio.sleep, backoff=60.0, max_backoff=60.0)
            after = 0
            for number in range(100_000):
                assert (await engine.generate(make_request("x", task=make_task(f"e{number}")))).attempts == 1
                after += len(ill.paths) >= len(asked_for)
                if after == 6:
                    break
            await engine.close()
    assert ill.paths == asked_for


@pytest.mark.parametrize("status", [401, 404, 302])
def test_servers_that_all_refuse_everything_are_a_fatal_error(status: int) -> None:
    with mocks(*({"error_rate": 1.0, "error_status": status},) * 2) as servers:
        engine = engine_over(servers)
        with pytest.raises(FatalEngineError, match=f"status {status}"):
            ask(engine, make_request("x"))
        assert [server.stats()["requests"] for server in servers] == [1, 1]


@in_a_loop
async def test_a_request_that_every_server_refuses_is_refused_and_no_server_is_put_aside() -> None:
    short, long = (make_request(text, task=make_task(text[0])) for text in ("short", "long" * 3000))
    with mocks(*({"longest_body": 5000},) * 3) as servers:
        engine = engine_over(servers)
        for _ in range(5):
            with pytest.raises(EngineError, match="status 400") as caught:
                await engine.generate(long)
            assert not isinstance(caught.value, FatalEngineError) and caught.value.attempts == 1
            assert (await engine.generate(short)).text == "the answer"
        assert not any(stats.aside for stats in engine.stats())
        await engine.close()
        assert sum(server.stats()["requests"] for server in servers) == 5 * 3 + 5


def test_a_server_that_refuses_now_and_then_keeps_its_work(episodes: dict[str, list[Request]]) -> None:
    with mocks({"error_rate": 0.05, "error_status": 400}, {}) as (picky, other):
        engine = engine_over([picky, other])
        replies = asyncio.run(walk(engine, episodes, at_once=8))
        assert len(replies) == sum(map(len, episodes.values())) and not any(stats.aside for stats in engine.stats())
        assert picky.stats()["failed"] > 5 and picky.stats()["served"] > 100


@in_a_loop
async def test_a_server_that_does_not_tell_its_models_is_put_aside_and_the_model_is_known_from_the_others() -> None:
    with mocks({"api_key": "another"}, {"served_models": ("one",)}) as servers:
        engine = engine_over(servers, served_model=None)
        assert await engine.discover() == "one"
        refused, well = engine.stats()
        assert well.aside is None and "put aside, because" in describe_endpoint(refused)
        await engine.close()


@in_a_loop
async def test_what_is_refused_while_the_others_are_put_aside_ends_the_request_alone() -> None:
    """The first refuses the request, the second everything: the request is refused, and the first server goes on."""
    with mocks({"first_faults": ("400",)}, {"error_rate": 1.0, "error_status": 401}) as servers:
        engine = engine_over(servers)
        with pytest.raises(EngineError, match="status 400") as caught:
            await engine.generate(make_request("x"))
        assert not isinstance(caught.value, FatalEngineError)
        assert (await engine.generate(make_request("x"))).text == "the answer"
        await engine.close()
