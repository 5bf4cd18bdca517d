"""A compact journal loses nothing, survives a kill as a plain one does, and stores equal answers in little space."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guieval.actions import Action, Boxes, Click, Point, Type, Unsupported
from guieval.errors import JournalError, UsageError
from guieval.journal import PACKED_STEPS, STEPS, Journal, Records, RunFolder
from guieval.journal.lines import json_line, read_line, read_name, write_line
from guieval.running.config import parse
from guieval.steps import Patch, Sample, StepError, StepOutcome, StepRecord, Usage
from tests.json_values import read_json
from tests.made_runs import step
from tests.scripted import ACTIONS, ScriptedEngine, make_episode, reply_with, run_scripted

texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.sampled_from(["\n", "\x1b", "\x01", "\0", "/", "", "n", "e"]),
)
numbers = st.one_of(
    st.floats(0, 1000), st.integers(0, 8000).map(lambda pixel: 1000 * min(pixel, 1080) / 1080), st.integers(0, 1000).map(float)
)
points = st.builds(Point, numbers, numbers)
actions = st.one_of(
    points.map(lambda point: Click(point=point)),
    texts.map(lambda text: Type(text=text)),
    st.builds(
        Unsupported, name=texts, arguments=st.dictionaries(texts, st.one_of(texts, st.floats(allow_nan=False), st.none()))
    ),
)


COLUMNS_OF_EQUAL_ANSWERS = """
0b3$%VPs`3b#NjqA|fmzVInLrEHPaG{ahd(dU)D(RKaeeFcAHf%4ctC6G)n<+DlKX-9LyT<iG^1f{kp`q>J+JI|C$zW^+i!e$O84d2igYp!_@AcI*HqD{JL&
!fKVnkG5f)<r{8!2s6yLhXJB-Q)wCo@BydLXm4{!b&i-KK0uRdlf#*9#TQ?JDMHD%5?4S7+7!6H)J2I~wDG~US<u!XnA;~!nJat3T^~@TGv2gSg*h?@V0>xm
D1Omkx+$1?{TJAFC&i24Q7pusGc_jYSomy^WN&|dz5T{*jnxLz>=Gdsg7^RX3$CvMIHQ980FNwYIN0-bSUB4@IPP#EoP$&S7$>Fn!Me|36`Ub!>8r#tXHOVc
oH=z$9ry-uAOci|mD#b^P-^r3GpOcCygm<;Cu2`|#t9`KQ_*8;`Iw3yQ^|~?syI;InqIyROH>VlAQ4L27G=1>x9d>GF-xBzvnH!rKWZ^eF;PezDwx%5&}>{k
N_V+wcdOy9W6vZdkJk9DK}$Y@t2JM)#2qY!<Vk#wM`FpzKldAD)_il1#*#;Jb%Xa8asxPL-S=zSHe|N`x=qJEz~wq4D?3d!9Il(zD$u3S`#@g8^30(ey{1eC
*QN;QM09?wE9G?fyuyQI)V*}1qc+-?=@slS%kc;f`WC?Mwbbxqx1xpZ5n;h4AAftwaVm9RZNehH<S|e9WQ^Oqs+${bCbpLmXRTKS{6}8m8fWV!q`|(!&@Fvw
Hoadc6**(Vj&e^Au;Od}!Z)ZHmvSh-2Q*tg+khP|773RaCB_J2gmH;+i800)V@&8JSS0;B5CY)Qz78cX^f(oG;=^28s;(PlOza1ZF8=@*LAV79
"""
"""A packed line as the earlier writer made them, which kept equal answers once and most columns as tables."""


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    reply = draw(st.one_of(st.none(), texts))
    part = st.one_of(st.none(), texts, st.just((reply or "")[2:-2] or None))
    return Sample(
        raw_response=reply,
        reasoning=draw(part),
        thought=draw(part),
        conclusion=draw(part),
        action=draw(st.one_of(st.none(), actions)),
        error=draw(st.one_of(st.none(), st.just(StepError(stage="generate", message="gone")))),
        outcome=StepOutcome(
            verdict=draw(st.sampled_from(["right", "wrong", "infrastructure_failure"])),
            distance=draw(st.one_of(st.none(), numbers)),
        ),
        usage=draw(st.one_of(st.none(), st.builds(Usage, prompt_tokens=st.integers(0, 9), completion_tokens=st.none()))),
        seconds=draw(st.one_of(st.none(), st.floats(0, 100))),
        attempts=draw(st.integers(1, 3)),
        logprob=draw(st.one_of(st.none(), st.floats(-10, 0))),
    )


@st.composite
def records(draw: st.DrawFn) -> StepRecord:
    boxes = draw(
        st.lists(st.tuples(st.floats(0, 400), st.floats(0, 400), st.floats(500, 1000), st.floats(500, 1000)), max_size=3)
    )
    task = step(
        draw(actions),
        episode=draw(texts) or "e",
        targets=Boxes([list(each) for each in boxes]),
        extras={draw(texts): {"/": draw(texts)}},
    )
    drawn = draw(st.lists(samples(), min_size=1, max_size=4))
    repeated = drawn * draw(st.integers(1, 3))
    patch = draw(st.one_of(st.none(), st.just(Patch(method="thought-free"))))
    return StepRecord(task=task, history=("model",) * draw(st.integers(0, 2)), samples=tuple(repeated), patch=patch)


def packed(record: StepRecord) -> bytes:
    return write_line(record, compact=True)


@given(records())
@settings(max_examples=300, deadline=None)
def test_a_packed_line_gives_back_every_value_and_holds_no_newline_but_its_last(record: StepRecord) -> None:
    line = packed(record)
    assert line.index(b"\n") == len(line) - 1
    assert read_json(json_line(line)) == read_json(record.model_dump_json())
    assert read_line(line) == StepRecord.model_validate_json(record.model_dump_json())
    assert read_name(line) == (record.task.key, record.finished)


def many(*replies: str, action: Action | None = None) -> StepRecord:
    task = step(Click(point=Point(500.0, 500.0)))
    outcome = StepOutcome(verdict="right", type_match=True, exact_match=True)
    return StepRecord(
        task=task,
        samples=tuple(
            Sample(raw_response=reply, action=action or task.action, outcome=outcome, seconds=1.5) for reply in replies
        ),
    )


def test_a_line_of_the_earlier_writer_is_read() -> None:
    def sample(number: int) -> Sample:
        place = Point(1000 * (200 + number % 6) / 1080, 500.0)
        (answered,) = many(f"<think>tap {number % 6}</think> now", action=Click(point=place)).samples
        usage = Usage(prompt_tokens=9, completion_tokens=number)
        reason = ("stop", "length")[number % 2]
        changes = {"thought": f"tap {number % 6}", "seconds": 0.5 * number, "finish_reason": reason, "usage": usage}
        return answered.model_copy(update=changes)

    record = many("a").model_copy(update={"samples": tuple(map(sample, range(12)))})
    line = base64.b85decode("".join(COLUMNS_OF_EQUAL_ANSWERS.split()))
    assert read_line(line) == record
    assert line != packed(record)


def test_equal_answers_cost_little() -> None:
    reply = "I tap the envelope in the corner, for mail is behind it. " * 4
    one, same = (len(packed(many(*[reply] * count))) for count in (1, 512))
    assert same < 2 * one
    assert len(read_line(packed(many(*[reply] * 512))).samples) == 512


@pytest.mark.parametrize("compact", [True, False])
def test_a_record_that_could_not_be_read_again_is_refused_and_the_journal_goes_on(tmp_path: Path, compact: bool) -> None:
    arguments: dict[str, object] = {}
    for _ in range(900):
        arguments = {"a": arguments}
    with Journal(tmp_path, compact=compact) as journal:
        journal.append(many("a"))
        with pytest.raises(JournalError, match=r"step made-up/a#0 cannot be stored as JSON that can be read again"):
            journal.append(many("b", action=Unsupported(name="scroll", arguments=arguments)))
        journal.append(many("c"))
    records = RunFolder(tmp_path).records
    assert [record.sample.raw_response for record in records] == ["a", "c"] and not records.damaged


def test_every_damaged_byte_costs_one_record_that_is_named(tmp_path: Path) -> None:
    with Journal(tmp_path, compact=True) as journal:
        for text in "abc":
            journal.append(many(text))
    path = tmp_path / PACKED_STEPS
    whole = path.read_bytes()
    second = whole.index(b"\n") + 1
    for place in range(second, whole.index(b"\n", second)):
        for changed in (whole[place] ^ 0xFF, whole[place] ^ 1):
            if changed == 0x0A:
                continue  # a newline makes two lines of one, both damaged
            path.write_bytes(whole[:place] + bytes([changed]) + whole[place + 1 :])
            found = RunFolder(tmp_path).records
            assert [record.sample.raw_response for record in found] == ["a", "c"] and found.damaged == [2], place
            assert len(list(found.outline())) == 2


def test_a_plain_journal_stays_json_line(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append(many("a"))
    with Journal(tmp_path, compact=True) as journal:
        journal.append(many("b"))
    assert [record.sample.raw_response for record in RunFolder(tmp_path).records] == ["a", "b"]
    assert (tmp_path / STEPS).read_bytes().count(b"\n") == 2


def test_a_compact_run_has_the_records_of_a_plain_one_and_is_resumed_from_where_it_was_cut(tmp_path: Path) -> None:
    episodes = [make_episode(f"e{number}", ACTIONS) for number in range(3)]

    def answering() -> ScriptedEngine:
        return ScriptedEngine(lambda request: reply_with(request.task.action, "as the task says"))

    for name, compact in (("plain", False), ("compact", True)):
        run_scripted(tmp_path / name, episodes, answering(), compact=compact, mode="soeval")
    plain_run, compact_run = (
        {
            record.task.key: [each.model_copy(update={"seconds": None}) for each in record.samples]
            for record in RunFolder(tmp_path / name).records
        }
        for name in ("plain", "compact")
    )
    assert plain_run == compact_run
    path = tmp_path / "compact" / PACKED_STEPS
    path.write_bytes(path.read_bytes()[:-5])
    engine = answering()
    outcome = run_scripted(tmp_path / "compact", episodes, engine, compact=True, mode="soeval", resume=True)
    assert len(engine.requests) == 1 and outcome.summary().complete


def test_a_compact_run_answers_a_replay(tmp_path: Path) -> None:
    from guieval.engines.replay import ReplayEngine
    from guieval.errors import DataError

    episodes = [make_episode("e", ACTIONS)]
    source = tmp_path / "source"
    run_scripted(source, episodes, ScriptedEngine(lambda request: reply_with(request.task.action)), compact=True)
    run_scripted(tmp_path / "again", episodes, ReplayEngine(Records(source)))  # type: ignore[arg-type]
    assert [record.sample.action for record in RunFolder(tmp_path / "again").records] == [
        record.sample.action for record in RunFolder(source).records
    ]
    path = source / PACKED_STEPS
    whole = path.read_bytes()
    path.write_bytes(whole[:60] + b"?" + whole[61:])
    with pytest.raises(DataError, match=r"line 1: is damaged"):
        ReplayEngine(Records(source))


def test_a_compact_journal_is_for_one_machine() -> None:
    with pytest.raises(UsageError, match="leave out compact, or --cluster"):
        parse({"model": "m", "bench": "b", "compact": True, "cluster": "ray"})
    assert parse({"model": "m", "bench": "b", "compact": True}).identity() == parse({"model": "m", "bench": "b"}).identity()
