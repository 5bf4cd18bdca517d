"""What a run costs, before and after: tokens times prices, the price table, the forecast, and the budget that ends a run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from guieval.actions import Stop
from guieval.errors import UsageError
from guieval.history import reference_entry
from guieval.journal import METRICS, RunFolder
from guieval.models import ModelInput
from guieval.playground.mock_server import MockServer
from guieval.registry import load_benchmark, load_model, model_configs
from guieval.running.costs import CostLimit, Price, Tokens, amount, bill, describe, find_price, price_of_all, read_prices
from guieval.running.engine_choice import HOSTED, open_server
from guieval.running.forecast import Forecast, forecast
from guieval.running.resolve import resolve
from guieval.settings import RunConfig
from guieval.steps import Sample, StepOutcome, StepRecord, Usage
from tests.cli.demo_runs import MODEL, SMALL, centre, command
from tests.command_line import CommandLine
from tests.json_values import Json, read_json
from tests.rows import every_row
from tests.scripted import make_episode

TASK = make_episode("e", [Stop()]).steps[0]
PRICE = Price(models=("m",), currency="EUR", input=2.0, output=8.0, source="made up", as_of="2026-11-21")
PRICES = f"- {{models: ['ui-tars*'], currency: EUR, input: 2.0, output: 8, source: made up, as_of: {PRICE.as_of}}}\n"


def record(*usages: tuple[int | None, int | None] | None, answered: bool = True) -> StepRecord:
    outcome = StepOutcome(verdict="wrong" if answered else "infrastructure_failure")
    counts = [None if usage is None else Usage(prompt_tokens=usage[0], completion_tokens=usage[1]) for usage in usages]
    text = "" if answered else None
    return StepRecord(task=TASK, samples=tuple(Sample(raw_response=text, outcome=outcome, usage=each) for each in counts))


def tokens_of(*records: StepRecord) -> Tokens:
    tokens = Tokens()
    for each in records:
        tokens.add(each)
    return tokens


def test_a_cost_is_tokens_times_prices_and_absurd_counts_lower_no_budget() -> None:
    tokens = tokens_of(record((400_000, 100_000)), record((600_000, 150_000), (0, 250_000)))
    assert tokens == Tokens(answers=3, reported=3, prompt=1_000_000, completion=500_000)
    assert PRICE.cost(tokens) == pytest.approx(1.0 * 2.0 + 0.5 * 8.0)
    honest = tokens_of(record((1000, 100)))
    absurd = tokens_of(record((1000, 100)), record((-(10**12), 100)), record((1000, -(2**62))), record((2**64 - 1, 1)))
    assert (absurd.answers, absurd.reported) == (4, 1)
    assert PRICE.cost(absurd) == pytest.approx(4 * (PRICE.cost(honest) or 0.0))
    budget = CostLimit(2.5 * (PRICE.cost(honest) or 0.0), PRICE)
    assert budget.reached(honest, 0) is None and "is used up" in (budget.reached(absurd, 0) or "")


def test_answers_without_counts_cost_what_the_others_do_and_the_bill_states_it() -> None:
    tokens = tokens_of(record((1000, 100)), record(None), record((1000, None)), record(None, answered=False))
    assert (tokens.answers, tokens.reported) == (3, 1), "half a count is none, and who did not answer is not paid"
    one = (1000 * 2.0 + 100 * 8.0) / 1e6
    assert PRICE.cost(tokens) == pytest.approx(3 * one)
    assert bill(tokens, PRICE)["estimated"] is True
    text = describe(bill(tokens, PRICE))
    assert text == "about 0.008400 EUR (1,000 tokens in, 100 out, reported for 1 of 3 answers; prices as of 2026-11-21)"


def test_a_bill_does_not_guess() -> None:
    assert PRICE.cost(Tokens()) == 0.0
    untold = tokens_of(record(None), record(None))
    assert PRICE.cost(untold) is None
    assert describe(bill(untold, PRICE)) == "counts not reported (0 of 2 answers)"
    assert describe(bill(Tokens(), PRICE)) is None
    result = bill(tokens_of(record((1500, 20))), None)
    assert (result["amount"], describe(result)) == (None, "1,500 tokens in, 20 out")


@every_row(("value", "text"), [(0.0, "0.00"), (0.000123, "0.000123"), (0.01, "0.0100"), (2.345, "2.35"), (1234.5, "1,234.50")])
def test_an_amount_shows_what_there_is(value: float, text: str) -> None:
    assert amount(value, "USD") == f"{text} USD"


@every_row(
    ("name", "prices"),
    [
        *(("gpt-4o", (2.5, 10.0)), ("gpt-4o-mini", (0.15, 0.6)), ("GPT-4o-2024-08-06", (2.5, 10.0))),
        *(("gpt-5.4-mini-2026-03-17", (0.75, 4.5)), ("claude-sonnet-4-6", (3.0, 15.0))),
        *(("claude-sonnet-4-5-20250929", (3.0, 15.0)), ("claude-opus-4-20250514", (15.0, 75.0))),
        *(("claude-opus-4-5-20251101", (5.0, 25.0)), ("gemini-2.5-pro", (1.25, 10.0))),
    ],
)
def test_shipped_prices_are_found_by_name(name: str, prices: tuple[float, float]) -> None:
    found = find_price(read_prices(), [name])
    assert found is not None and (found.input, found.output) == prices


def test_every_shipped_price_has_a_source_the_first_name_counts_and_a_missing_file_is_reported(tmp_path: Path) -> None:
    shipped = read_prices()
    for price in shipped:
        assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", price.as_of) and "." in price.source
        for pattern in price.models:
            assert find_price(shipped, [pattern.replace("*", "26-01-01")]) is price
    other = PRICE.model_copy(update={"models": ("n*",), "input": 5.0})
    assert find_price([PRICE, other], ["x", "nn", "m"]) is other
    assert find_price([PRICE, other], ["x"]) is None
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_prices(tmp_path / "none.yaml")


def test_every_hosted_model_with_a_computer_tool_has_a_price_and_what_one_serves_oneself_has_none() -> None:
    prices = read_prices()
    for name, config in model_configs().items():
        if config.adapter != "openai_tools" and config.engine not in HOSTED:
            assert find_price(prices, [config.hf_id or name, name]) is None
    hosted = [config for config in model_configs().values() if config.engine in HOSTED]
    unpriced = [each.name for each in hosted if find_price(prices, [each.served_as or each.name]) is None]
    assert len(hosted) > 30 and unpriced == ["claude-computer-toolset"], "it is for a model that its user names"


@every_row(
    ("text", "message"),
    [
        ("models: [a]", "must hold a list of prices"),
        ("- {models: [a], currency: EUR, input: 1, source: s, as_of: d}", "price 1, field output: is missing"),
        ("- {models: [a], currency: EUR, input: 1, output: -2, source: s, as_of: d}", "output: expected 0 or more"),
        ("- {models: [a], currency: EUR, input: x, output: 2, source: s, as_of: d}", "field input: .*number.*'x'"),
        ("- 5", "price 1, field \\(whole entry\\)"),
        ("- {", "is not YAML"),
    ],
)
def test_a_damaged_price_file_gives_one_sentence(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=message) as raised:
        read_prices(file)
    assert "\n" not in str(raised.value)


def test_a_budget_leaves_room_for_what_is_in_flight() -> None:
    one = tokens_of(record((1000, 250)))  # 0.004
    budget = CostLimit(0.012, PRICE)
    assert budget.reached(Tokens(), in_flight=64) is None, "before any answer nothing is known"
    assert budget.reached(one, in_flight=1) is None
    used_up = "the budget of 0.0120 EUR is used up (0.004000 EUR spent, 2 requests in flight)"
    assert budget.reached(one, in_flight=2) == used_up
    budget.close(one + one)
    assert budget.spent(Tokens()) == pytest.approx(0.008)
    assert budget.reached(Tokens(), in_flight=0) is None
    assert budget.reached(one, in_flight=0) is not None, "one budget is for all runs of a command"


def test_a_budget_ends_a_run_whose_server_states_no_counts() -> None:
    budget = CostLimit(5.0, PRICE)
    silent = tokens_of(*[record(None)] * 9)
    assert budget.reached(silent, in_flight=4) is None
    silent.add(record(None))
    reason = "the server reports no token counts, so the budget of 5.00 EUR cannot be kept"
    assert budget.reached(silent, in_flight=4) == reason


def test_each_model_of_a_composition_has_its_own_price_also_for_what_is_in_flight() -> None:
    """a: 1,000 x 2 + 100 x 8; b: 500 x 1 + 20 x 4, twice, because one of its two responses states no counts."""
    found = Tokens()
    for counts, model in (((1000, 100), "a"), ((500, 20), "b"), ((None, None), "b")):
        found.count(Usage(prompt_tokens=counts[0], completion_tokens=counts[1], model=model))
    price = price_of_all({"a": PRICE, "b": PRICE.model_copy(update={"input": 1.0, "output": 4.0, "as_of": "2026-11-22"})})
    assert price is not None and price.cost(found) == pytest.approx(2800e-6 + 2 * 580e-6)
    assert describe(bill(found + Tokens(), price)) == (
        "about 0.003960 EUR (1,500 tokens in, 120 out, reported for 2 of 3 answers; a 0.002800 EUR, b 0.001160 EUR; "
        "prices as of 2026-11-21, 2026-11-22)"
    )
    budget = CostLimit(0.0053, price)  # a response costs 0.00132 in the mean
    assert budget.reached(found, in_flight=1) is None and "is used up" in (budget.reached(found, in_flight=2) or "")
    found.count(Usage(prompt_tokens=1, completion_tokens=1))
    assert price.cost(found) is None, "whose tokens these are is not known"
    assert price_of_all({"a": PRICE, "b": None}) is None
    assert price_of_all({"a": PRICE, "b": PRICE.model_copy(update={"currency": "USD"})}) is None


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with centre() as running:  # tells 3,000 + 60 tokens each time
        yield running


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    file = tmp_path / "prices.yaml"
    file.write_text(PRICES)
    return file


FEW = ("--concurrency", "2", "--quiet")
EACH = (3000 * 2.0 + 60 * 8.0) / 1e6


def cost_in(directory: Path) -> Json:
    found = read_json((directory / METRICS).read_text())["cost"]
    return found


def test_a_run_states_what_it_cost(guieval: CommandLine, server: MockServer, prices: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = guieval(*command(server, tmp_path / "demo", out, *FEW, "--prices", prices))
    steps = len(list(RunFolder(out).records))
    assert done.code == 0
    assert f"cost:     offline: {amount(steps * EACH, 'EUR')} ({steps * 3000:,} tokens in, {steps * 60:,} out; " in done.out
    cost = cost_in(out)
    assert cost["amount"] == pytest.approx(steps * EACH) and cost["price"]["as_of"] == "2026-11-21"
    again = guieval("run", "--replay", out, "--model", MODEL, "--bench", "demo", "--out", tmp_path / "again", *SMALL)
    assert again.code == 0 and "cost:" not in again.out, "a replay costs nothing"


def test_without_a_price_a_run_states_its_tokens_and_a_budget_is_refused_at_once(
    guieval: CommandLine, server: MockServer, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    done = guieval(*command(server, tmp_path / "demo", out, *FEW))
    steps = len(list(RunFolder(out).records))
    assert f"tokens:   offline: {steps * 3000:,} tokens in, {steps * 60:,} out\n" in done.out and "cost:" not in done.out
    assert cost_in(out)["amount"] is None and cost_in(out)["prompt_tokens"] == steps * 3000
    out = tmp_path / "refused"
    done = guieval(*command(server, tmp_path / "demo", out, *FEW, "--budget", "5"))
    assert done.code == 2 and not out.exists()
    assert "a budget needs the price of " in done.err and "--prices FILE" in done.err


def test_a_run_goes_on_with_a_larger_budget(guieval: CommandLine, server: MockServer, prices: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    modes = ("--mode", "offline", "--mode", "sop")
    budget = ("--prices", prices, "--budget", f"{EACH * 8:.5f}")
    done = guieval(*command(server, tmp_path / "demo", out, *FEW, *modes, *budget))
    assert done.code == 1
    assert re.search(r"stopped:  offline: the budget of 0\.0518 EUR is used up \(0\.\d+ EUR spent, \d requests", done.out)
    assert f"not begun: 1 of 2 runs, the first {out / 'sop'}" in done.out
    assert f"resume:   guieval run --resume {out}" in done.out
    records = list(RunFolder(out / "offline").records)
    assert 0 < len(records) <= 8 and all(record.finished for record in records), "what was in flight is not thrown away"
    assert cost_in(out / "offline")["amount"] == pytest.approx(len(records) * EACH)

    same = guieval("run", "--resume", out, "--quiet")
    assert same.code == 1 and len(list(RunFolder(out / "offline").records)) == len(records), "it is that of the whole run"
    rest = guieval("run", "--resume", out, "--quiet", "--budget", "100")
    assert rest.code == 0 and "stopped:" not in rest.out
    assert cost_in(out / "offline")["answers"] == len(list(RunFolder(out / "offline").records)) > len(records)


PRICED = Price(models=("m",), currency="EUR", input=2.0, output=10.0, source="here", as_of="2026-11")
NOWHERE = "http://127.0.0.1:9/v1"


def of(tmp_path: Path, **settings: object) -> Forecast:
    given = {"model": "gpt-4o", "bench": "demo", "bench_options": {"episodes": 2}, "split": "all", "data": str(tmp_path)}
    config = RunConfig.model_validate({**given, "base_urls": (NOWHERE,), **settings})
    return forecast(resolve(config, open_server(config, tmp_path / "log")))


def tokens(prepared: ModelInput) -> float:
    """Of a prompt with a screen of 360 x 800 pixels: 13 x 29 squares of 28 pixels."""
    return (len(prepared.text) + len(json.dumps(prepared.extra))) / 4 + 13 * 29


def test_requests_are_steps_times_samples_and_a_bound_where_a_mode_stops_early(tmp_path: Path) -> None:
    steps = sum(len(episode) for episode in load_benchmark("demo", tmp_path, episodes=2))
    assert (of(tmp_path).requests, of(tmp_path).at_most) == (steps, False)
    bounded = of(tmp_path, mode="sop", samples=3, sampling={"temperature": 1.0})
    assert (bounded.requests, bounded.at_most) == (3 * steps, True)


def test_tokens_are_the_mean_of_the_prompts(tmp_path: Path) -> None:
    model = load_model("gpt-4o")
    sizes = []
    for episode in load_benchmark("demo", tmp_path, episodes=2):
        past = tuple(map(reference_entry, episode.steps))
        sizes += [tokens(model.prepare_input(step, past[: step.step_index])) for step in episode.steps]
    assert len(sizes) <= 20, "so all are measured"
    found = of(tmp_path)
    assert found.prompt_tokens == pytest.approx(sum(sizes) / len(sizes))
    assert found.response_tokens == 1024 and found.price is not None


def test_the_sentences_name_what_is_not_known() -> None:
    lines = dict(Forecast("sop", 1234, True, 1500.4, 100, PRICED).lines())
    assert lines["requests"] == "at most 1,234 in mode sop"
    estimated = "estimated at one token per 4 characters or per 28 x 28 pixels"
    assert lines["tokens"] == f"about 1,900,000 in, 1,500 a request ({estimated})"
    added = dict(Forecast("sop", 1234, True, 1500.4, 100, PRICED, 400).lines())["tokens"]
    assert added.endswith(f"({estimated}, plus 400 for the service's own tool)"), "they are part of the sum"
    assert lines["output"] == "at most 123,400 tokens, 100 each"
    assert lines["cost"] == "about 3.70 EUR for the prompts, at most 1.23 EUR for the responses (prices as of 2026-11)"
    assert "not known" in dict(Forecast("offline", 5, False, 10.0, None, None).lines())["cost"]
    others = {"tokens": "not known, since they depend on the screens", "at worst": "1 request a step"}
    online = dict(Forecast("online", 5, True, None, 7, PRICED).lines())
    assert online == {"requests": "at most 5 in mode online", **others}


def test_the_worst_case_is_every_attempt_with_every_look(tmp_path: Path) -> None:
    one = Forecast("offline", 20, False, 1000.0, 100, PRICED, steps=10, attempts=5, looks=3, screen_tokens=400.0, thoughts=1)
    assert one.worst_requests == 5 * (2 * 4 + 1)
    prompts = 5 * (2 * (1000 + 1500 + 2000 + 2500) + 1000)  # each look's call and screenshot are sent with the next request
    assert one.worst_cost() == pytest.approx((prompts * 2.0 + 45 * 100 * 10.0) / 1e6)
    assert dict(one.lines())["at worst"] == (
        "45 requests a step (2 samples x 5 attempts x 4 responses, and 5 for its patch), 0.2000 EUR each, 1.90 EUR in all"
    )
    staged = dict(Forecast("offline", 60, False, 1000.0, None, None, steps=10, attempts=5, stages=3).lines())
    assert staged["at worst"] == "30 requests a step (3 stages x 2 samples x 5 attempts)"
    unlimited = Forecast("offline", 20, False, 1000.0, None, PRICED, steps=20, attempts=5)
    assert "5 requests a step" in dict(unlimited.lines())["at worst"] and "no limit" in dict(unlimited.lines())["at worst"]
    assert (of(tmp_path).attempts, of(tmp_path, max_attempts=2).worst_requests) == (5, 2)
    computer = of(tmp_path, model="claude-opus-4-7-computer")
    assert (computer.looks, computer.response_tokens, computer.worst_requests) == (3, 4096, 20)


def test_the_makers_tool_is_counted_where_its_size_is_published() -> None:
    sizes = {name: load_model(name).tool_tokens for name in ("claude-opus-5-computer", "claude-opus-4-7-computer", "gpt-4o")}
    assert sizes == {"claude-opus-5-computer": 4520, "claude-opus-4-7-computer": 1234, "gpt-4o": 0}


def test_the_command_sends_nothing_and_writes_nothing(tmp_path: Path, guieval: CommandLine) -> None:
    out = tmp_path / "run"
    words: list[str | Path] = ["--bench", "demo", "--data", tmp_path / "demo", "--out", out, "--dry-run"]
    model = ["--model", "claude-opus-4-7-computer", "--base-url", NOWHERE]
    done = guieval("run", *model, *words, "--mode", "sop", "--mode", "online")
    assert "at most" in done.out and "USD" in done.out and "nothing was sent" in done.out
    assert not out.exists()
    for alone in ("gpt-4o", "gemini-2.5-computer-use"):  # needs neither a server nor a key
        assert "requests:" in guieval("run", "--model", alone, *words).out
    assert "requests: none: ocr-baseline" in guieval("run", "--model", "ocr-baseline", *words).out
