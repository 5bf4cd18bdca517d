"""What is kept of a server's answer can be written to a journal and read again, whatever the answer holds."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from guieval.engines.http.chat_answers import TryAgain, response_in
from guieval.evaluation import ActionEvaluator
from guieval.history.modes import get_mode
from guieval.journal import STEPS, Journal, RunFolder
from guieval.models.scored_response import read_response
from guieval.registry import load_model
from guieval.running.costs import Price, Tokens
from guieval.steps import MOST_TOKENS, Sample, StepOutcome, StepRecord, Usage
from tests.metrics.made_columns import made_ledger, whole
from tests.rows import every_row
from tests.scripted import ACTIONS, make_episode

MODEL = load_model("qwen3-vl-8b-instruct")
TASK = make_episode("e", ACTIONS).steps[0]
PRICE = Price(models=("m",), currency="EUR", input=2.0, output=8.0, source="made up", as_of="2026-11-21")

odd_numbers = st.one_of(
    st.integers(),
    st.sampled_from([2**63 - 1, 2**64 - 1, -1, 10**400, -(10**400), 10**4299, 1e308, -1e308, 1e-320]),
    st.floats(),
)
odd_texts = st.text(st.characters(), max_size=20)  # half surrogate pairs among them
odd = st.recursive(
    st.one_of(st.none(), st.booleans(), odd_numbers, odd_texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(odd_texts, inner, max_size=3)),
    max_leaves=6,
)
arguments = st.fixed_dictionaries(
    {"action": st.one_of(st.sampled_from(["click", "type", "swipe", "wait", "key"]), odd)},
    optional={"coordinate": st.one_of(st.lists(odd_numbers, min_size=2, max_size=2), odd), "text": odd, "time": odd, "x": odd},
)
calls = st.lists(
    st.fixed_dictionaries(
        {
            "function": st.fixed_dictionaries(
                {"name": st.one_of(st.just("mobile_use"), odd), "arguments": st.one_of(odd, arguments.map(json.dumps))}
            )
        }
    ),
    max_size=2,
)
messages = st.fixed_dictionaries(
    {}, optional={"content": odd, "reasoning_content": odd, "refusal": odd, "tool_calls": st.one_of(odd, calls)}
)
logprobs = st.fixed_dictionaries({"content": st.lists(st.fixed_dictionaries({"logprob": odd_numbers}), max_size=4)})
choices = st.fixed_dictionaries({"message": messages}, optional={"finish_reason": odd, "logprobs": st.one_of(odd, logprobs)})
usages = st.fixed_dictionaries({}, optional={"prompt_tokens": odd, "completion_tokens": odd})
answers = st.fixed_dictionaries({"choices": st.lists(choices, min_size=1, max_size=1)}, optional={"usage": usages})


def answer(**more: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": "x"}}], **more}


@given(answers, st.booleans())
@example(answer(usage={"prompt_tokens": 5, "completion_tokens": 2**64 - 1}), False)
@example(answer(usage={"prompt_tokens": -(2**70), "completion_tokens": -5}), True)
@example({"choices": [{"message": {"content": "x"}, "logprobs": {"content": [{"logprob": 1e308}] * 2}}]}, False)
@example({"choices": [{"message": {"content": "x"}, "logprobs": {"content": [{"logprob": 10**400}]}}]}, False)
@example({"choices": [{"message": {"content": "x"}, "finish_reason": "\ud800"}]}, True)
@settings(max_examples=300, deadline=None)
def test_a_record_of_any_answer_is_read_back_equal_counted_and_costs_something(body: dict[str, Any], compact: bool) -> None:
    try:
        response = response_in(json.dumps(body).encode())
    except TryAgain:
        return
    sample = read_response(MODEL, ActionEvaluator("guievalkit"), TASK, response)
    record = StepRecord(task=TASK, samples=(sample,))
    with tempfile.TemporaryDirectory() as folder:
        with Journal(Path(folder), compact=compact) as journal:
            journal.append(record)
        records = RunFolder(Path(folder)).records
        assert list(records) == [record] and not records.damaged
    ledger = made_ledger({TASK.episode_key: range(4)}, get_mode("offline"))
    ledger.take(record)
    whole(ledger)
    tokens = Tokens()
    tokens.add(record)
    assert (PRICE.cost(tokens) or 0.0) >= 0.0


def test_an_answer_with_a_number_that_python_does_not_read_is_an_answer_all_the_same() -> None:
    digits = "9" * 5000
    body = f'{{"choices": [{{"message": {{"content": "x"}}}}], "usage": {{"prompt_tokens": 3, "completion_tokens": {digits}}}}}'
    reply = response_in(body.encode())
    assert reply.text == "x" and reply.usage is not None and reply.usage.completion_tokens is None


@every_row("count", [-1, MOST_TOKENS + 1, 2**64 - 1, True, 1.5, "many", None])
def test_an_absurd_count_is_unknown(count: Any) -> None:
    assert Usage(prompt_tokens=count, completion_tokens=MOST_TOKENS) == Usage(completion_tokens=MOST_TOKENS)


def test_a_journal_of_an_older_version_with_absurd_numbers_is_read_with_them_unknown(tmp_path: Path) -> None:
    good = Usage(prompt_tokens=7, completion_tokens=6)
    sample = Sample(raw_response="x", outcome=StepOutcome(verdict="wrong"), usage=good, logprob=-0.5)
    with Journal(tmp_path) as journal:
        journal.append(StepRecord(task=TASK, samples=(sample,)))
    values = json.loads((tmp_path / STEPS).read_text(encoding="utf-8"))
    del values["crc32"]
    line = json.dumps(values, separators=(",", ":")) + "\n"
    for count in (str(2**64 - 1), "-1", "1e400", "9" * 400):
        for logprob in ("1e308", "-1e400", "9" * 400):
            written = line.replace('"completion_tokens":6', f'"completion_tokens":{count}').replace("-0.5", logprob)
            assert written != line
            (tmp_path / STEPS).write_text(written, encoding="utf-8")
            records = RunFolder(tmp_path).records
            read = list(records)
            assert not records.damaged
            assert [record.sample.usage for record in read] == [Usage(prompt_tokens=7)]
            assert [record.sample.logprob for record in read] == [None]
            ledger = made_ledger({TASK.episode_key: range(1)}, get_mode("offline"))
            ledger.take(read[0])
            assert whole(ledger).metrics["completion tokens"].value is None
