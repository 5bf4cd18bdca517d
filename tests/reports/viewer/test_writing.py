"""What a report's files have: verdicts, areas, images, many samples, numbers as in Python; and the command that writes them."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from guieval.actions import Action, Boxes, Open, Point, Press, Scroll, Stop, Type, Unsupported
from guieval.data.doctor.counts import counted
from guieval.errors import UsageError
from guieval.journal import ROLLOUT
from guieval.metrics.rounding import percentage
from guieval.registry import load_benchmark
from guieval.reports.viewer.content import CHUNK
from guieval.reports.viewer.folder import script_text
from guieval.reports.viewer.pictures import LONGEST_SIDE, Pictures
from guieval.reports.viewer.reading import protocols_to_show, shown_run
from guieval.reports.viewer.sources import PlannedTasks
from guieval.reports.viewer.writing import write_report
from guieval.scoring.matrix import judge_run
from guieval.steps import EpisodeKey, StepRecord
from tests.command_line import CommandLine
from tests.json_values import Json, read_json
from tests.pictures import orientation
from tests.reports.opened.test_opened_run import drawn
from tests.reports.scripted_runs import edited
from tests.reports.viewer.made_run import PROTOCOL, at, failed, record, report, task, write_run
from tests.rows import every_row

RIGHT, MISS, WRONG_TYPE, UNPARSEABLE, UNSUPPORTED, FAILED, NOT_REACHED, NOT_RUN, ABSENT = "012345678"


def value_in(script: str) -> Json:
    """What a browser hands to the page: the text of the one string, read as JSON."""
    inside = script[script.index("JSON.parse('") + len("JSON.parse('") : script.rindex("'))")]
    assert "'" not in inside
    return read_json(inside.replace("\\\\", "\\"))


def read(folder: Path, name: str) -> Any:
    return value_in((folder / "report" / "data" / name).read_text(encoding="ascii"))


def with_screenshot(folder: Path, image: Image.Image, **options: Any) -> Path:
    """A data folder with the screenshot of the first step."""
    (folder / "data" / "e1").mkdir(parents=True)
    image.save(folder / "data" / "e1" / "0.png", **options)
    return folder / "data"


def three_steps() -> list[StepRecord]:
    return [record(task(step=0), at(500, 500)), record(task(step=1), at(500, 900)), record(task(step=2), Stop())]


def test_ends_are_distinguished_types_are_the_known_ones_and_the_last_finished_record_counts(tmp_path: Path) -> None:
    known = Unsupported(name="scroll", known="SCROLL", problem="it has no direction")
    report(tmp_path / "known", [record(task(), known)])
    index = read(tmp_path / "known", "index.js")
    assert [index["types"][code] for code in index["predicted"][0]][:1] == ["SCROLL"]
    report(tmp_path / "ends", [record(task(length=2), None), record(task(step=1, length=2), Unsupported(name="fly"))])
    assert read(tmp_path / "ends", "index.js")["ends"] == [[UNPARSEABLE + UNSUPPORTED]]
    again = [record(task(length=1), Stop()), record(task(length=1), at(500, 500)), failed(task(length=1))]
    report(tmp_path / "a", again)
    assert read(tmp_path / "a", "index.js")["ends"] == [[RIGHT]]
    report(tmp_path / "b", [failed(task(length=1)), record(task(length=1), Stop())])
    assert read(tmp_path / "b", "index.js")["ends"] == [[WRONG_TYPE]]


@given(st.recursive(st.text() | st.none() | st.integers(), lambda inner: st.dictionaries(st.text(), inner)))
def test_a_script_holds_any_value_and_nothing_else(value: Any) -> None:
    script = script_text("chunk", 3, json.dumps(value))
    assert script.isascii() and script.count("\n") == 1
    assert not set(script.removeprefix("guieval.chunk(3,JSON.parse('").removesuffix("'));\n")) & set("<>&'\u2028")
    assert value_in(script) == value


@every_row("text", ["</script><script>alert(1)</script>", "<!--", "\u2028\u2029", "\\", "\\'", "\0", "\ud800"])
def test_nothing_closes_the_string_or_the_script(text: str) -> None:
    script = script_text("index", 0, json.dumps({text: text}))
    assert script.isascii() and "<" not in script and value_in(script) == {text: text}


def test_every_planned_step_has_a_verdict_under_every_protocol(tmp_path: Path) -> None:
    boxed = task("e2", 0, 2, targets=Boxes([[400, 400, 600, 600]]))
    records = [*three_steps(), record(boxed, at(600, 600)), failed(task("e2", 1, 2))]
    plan = {EpisodeKey("demo", "", "e1"): range(3), EpisodeKey("demo", "", "e2"): range(2), EpisodeKey("demo", "", "e3"): [4]}
    written = report(tmp_path, records, protocols=("guievalkit", "ui-s1-sop"), plan=plan)
    index = read(tmp_path, "index.js")
    assert (written.steps, written.episodes) == (6, 3)
    assert index["ends"] == [[RIGHT + MISS + WRONG_TYPE + RIGHT + FAILED + NOT_RUN] * 2]
    assert index["labels"] == ["e1", "e2", "e3"] and index["starts"] == [0, 3, 5] and index["steps"] == [0, 1, 2, 0, 1, 4]
    assert [each["name"] for each in index["protocols"]] == ["guievalkit", "ui-s1-sop"] and index["shown"] == 0
    rows = read(tmp_path, "steps-00000.js")["rows"]
    assert [each[0] for each in rows[3]["runs"][0]["samples"][0]["outcomes"]] == [0, 0]
    assert "task" not in rows[5]  # nothing was recorded of it


def test_steps_after_the_stop_are_not_reached_under_each_protocol_by_itself(tmp_path: Path) -> None:
    # 100 thousandths off: right under guievalkit (140 allowed), wrong under ui-s1-sop (40 allowed).
    records = [record(task(step=0), at(500, 600)), record(task(step=1), at(500, 500)), record(task(step=2), Stop())]
    report(tmp_path, records, protocols=("guievalkit", "ui-s1-sop"), stop="first-mismatch")
    assert read(tmp_path, "index.js")["ends"] == [[RIGHT + RIGHT + WRONG_TYPE, MISS + NOT_REACHED * 2]]


@pytest.mark.parametrize("stop", ["never", "first-mismatch"])
def test_every_end_is_the_one_that_the_figures_count(tmp_path: Path, stop: str) -> None:
    """The viewer walks a run by itself; the columns that all figures start from must say the same of every step."""
    rng = random.Random(stop)
    answers: list[Action | None] = [at(500, 500), at(560, 590), Stop(), Unsupported(name="fly"), None]
    records = []
    for episode in range(12):
        steps = [task(f"e{episode}", each, 5) for each in range(5)]
        for one in steps[: rng.randint(3, 5)]:
            records.append(failed(one) if rng.random() < 0.15 else record(one, rng.choice(answers)))
    written = report(tmp_path, records, protocols=("all",), stop=stop)
    index = read(tmp_path, "index.js")
    columns = judge_run(tmp_path / "run", [each["name"] for each in index["protocols"]]).columns()
    as_columns = {RIGHT: 0, MISS: 1, WRONG_TYPE: 1, UNPARSEABLE: 2, UNSUPPORTED: 3, FAILED: 4, NOT_REACHED: 5, NOT_RUN: 6}
    assert written.steps == len(columns) == 60
    for protocol, ends in zip(index["protocols"], index["ends"][0], strict=True):
        judged = columns.judged[protocol["name"]]
        assert [as_columns[each] for each in ends] == judged.end.tolist(), protocol
        typed = [row for row, each in enumerate(ends) if each == MISS]
        assert judged.type_match[typed].all() and not judged.exact_match[typed].any()


def test_accepted_areas_are_the_rules_own(tmp_path: Path) -> None:
    """By hand: a box of 100 x 200 about (300, 300), enlarged x1.2, is 120 x 240 about it; UI-S1 accepts 40 thousandths."""
    boxed = task(length=1, targets=Boxes([[250, 200, 350, 400]]), action=at(300, 300))
    report(tmp_path, [record(boxed, at(300, 300))], protocols=("ui-s1-sop", "odyssey-v2"))
    values = read(tmp_path, "steps-00000.js")["rows"][0]["task"]
    assert values["targets"] == [[250, 200, 350, 400]]
    enlarged, plain = (values["areas"][each] for each in values["area"])
    assert enlarged == {"boxes": [[240, 180, 360, 420]], "polygon": False, "radii": [[300, 300, 40, 40]], "varies": False}
    assert plain["boxes"] == "targets"  # just the step's own
    assert plain["radii"][0][:2] == [300, 300]


def test_areas_are_round_on_the_screen_may_vary_and_steps_without_a_place_have_none(tmp_path: Path) -> None:
    # By hand, on 300 x 600 pixels: 140 px are 466.667 thousandths across and half of it down; 4 % of 600 px are 24 px.
    report(tmp_path / "round", [record(task(length=1), at(1, 1))], protocols=("gui-r1-reward", "infigui-r1"))
    values = read(tmp_path / "round", "steps-00000.js")["rows"][0]["task"]
    radii = [values["areas"][each]["radii"][0] for each in values["area"]]
    assert radii == [[500, 500, 466.667, 233.333], [500, 500, 80, 40]]
    boxed = task(length=1, targets=Boxes([[100, 100, 300, 300]]))
    report(tmp_path / "varies", [record(boxed, at(1, 1))], protocols=("coat-intended",))
    (area,) = read(tmp_path / "varies", "steps-00000.js")["rows"][0]["task"]["areas"]
    assert area == {"boxes": [], "polygon": False, "radii": [], "varies": True}
    scroll = task(length=1, action=Scroll(point=Point(500, 600), direction="up"), targets=Boxes([[0, 0, 9, 9]]))
    report(tmp_path / "none", [record(scroll, Open(app="Maps"))])
    row = read(tmp_path / "none", "steps-00000.js")["rows"][0]
    assert row["task"]["area"] == [-1] and row["task"]["areas"] == []
    assert row["task"]["reference"]["path"] == [500, 600, 500, 300]  # the finger moves up by 300 thousandths
    assert row["runs"][0]["samples"][0]["action"] == {"type": "OPEN", "app": "Maps"}


def test_steps_come_in_chunks_and_progress_is_reported(tmp_path: Path) -> None:
    count = CHUNK + 5
    progress: list[tuple[int, int]] = []
    records = [record(task(step=each, length=count), at(500, 500)) for each in range(count)]
    report(tmp_path, records, on_progress=lambda done, total: progress.append((done, total)))
    assert len(read(tmp_path, "steps-00000.js")["rows"]) == CHUNK and len(read(tmp_path, "steps-00001.js")["rows"]) == 5
    assert progress == [(CHUNK, count), (count, count)]
    assert len(read(tmp_path, "text-00000.js")) == count


def test_no_text_of_a_server_swells_the_page(tmp_path: Path) -> None:
    long = "x" * 1_000_000
    one = record(task(length=1), Stop(), raw=long, finish_reason=long, reasoning=long, thought=long, conclusion=long)
    report(tmp_path, [one])
    assert (tmp_path / "report" / "data" / "steps-00000.js").stat().st_size < 200_000


def test_search_texts_hold_reply_instruction_and_labels_and_groups_are_columns(tmp_path: Path) -> None:
    one = task(length=1, low_level_instruction="Tap Music", groups={"app": "Player"}, action=Type(text="mozart"))
    report(tmp_path / "texts", [record(one, Stop(), raw="I stop here")])
    (text,) = read(tmp_path / "texts", "text-00000.js")
    assert {"Tap Music", "Player", "mozart", "I stop here"} <= set(text.split("\n"))
    labelled = [task(step=0), task(step=1, groups={"app": "Mail"}), task(step=2)]
    report(tmp_path / "groups", [record(each, Stop()) for each in labelled])
    assert read(tmp_path / "groups", "index.js")["groups"] == [{"name": "app", "values": ["Mail"], "of": [-1, 0, -1]}]


def test_two_runs_are_set_side_by_side_further_steps_marked_and_strangers_refused(tmp_path: Path) -> None:
    other = [record(task(step=0), Stop()), record(task("elsewhere", 0, 1), Stop())]
    written = report(tmp_path, three_steps(), against=other)
    assert read(tmp_path, "index.js")["ends"] == [[RIGHT + MISS + WRONG_TYPE], [WRONG_TYPE + NOT_RUN * 2]]
    assert written.notes == ["The compared run has 1 further step, not shown here."]
    written = report(tmp_path / "absent", [*three_steps(), record(task("e9", 0, 1), Stop())], against=three_steps())
    assert read(tmp_path / "absent", "index.js")["ends"][1] == [RIGHT + MISS + WRONG_TYPE + ABSENT]
    assert written.notes == ["The compared run does not have 1 of the 4 steps."]
    with pytest.raises(UsageError, match="share no step"):
        report(tmp_path / "none", three_steps(), against=[record(task("other", 0, 1), Stop())])


def test_labels_that_would_be_equal_are_distinguished(tmp_path: Path) -> None:
    report(tmp_path, [record(task("a/b", 0, 1), Stop()), record(task("b", 0, 1, subset="a"), Stop())])
    assert read(tmp_path, "index.js")["labels"] == ["a/b", "a/b (2)"]


def test_screenshots_are_made_small_once_and_named_by_nothing_of_the_data(tmp_path: Path) -> None:
    data = with_screenshot(tmp_path, Image.new("RGB", (1000, 4000), "navy"))
    tall = task(length=1, screenshot_size=(1000, 4000))
    written = report(tmp_path, [record(tall, Stop())], screenshots=data, small=True)
    assert (written.images, list(written.lacking)) == (1, [])
    row = read(tmp_path, "steps-00000.js")["rows"][0]
    name = row["image"]
    assert re.fullmatch(r"[0-9a-f]{16}\.jpg", name) and row["thumb"] == name
    full = tmp_path / "report" / "images" / name
    with Image.open(full) as image, Image.open(tmp_path / "report" / "thumbs" / name) as thumb:
        assert image.size == (400, LONGEST_SIDE) and thumb.size == (45, 180)
    before = full.stat().st_mtime_ns
    assert Pictures(data, tmp_path / "report", small=True).of([tall, tall])[1].name == name
    assert full.stat().st_mtime_ns == before


@pytest.mark.parametrize("same_disk", [True, False])
def test_screenshots_are_the_original_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same_disk: bool) -> None:
    """Linked, so that a report takes no room; copied from another file system."""
    data = with_screenshot(tmp_path, Image.new("RGB", (300, 600), "navy"), format="JPEG")  # the format is that of the content
    original = data / "e1" / "0.png"
    if not same_disk:

        def refuse(source: Path, target: Path) -> None:
            raise OSError(errno.EXDEV, "another file system")

        monkeypatch.setattr(os, "link", refuse)
    report(tmp_path, [record(task(length=1), Stop())], screenshots=data)
    row = read(tmp_path, "steps-00000.js")["rows"][0]
    shown = tmp_path / "report" / "images" / row["image"]
    assert shown.suffix == ".jpg" and row["thumb"] == "" and not (tmp_path / "report" / "thumbs").exists()
    assert shown.read_bytes() == original.read_bytes() and shown.samefile(original) == same_disk


@pytest.mark.parametrize("small", [True, False])
def test_a_screenshot_is_shown_as_the_model_saw_it(tmp_path: Path, small: bool) -> None:
    """Turned and on white in the file itself: marks lie on the turned picture, and a page would show what is behind it."""
    clear = Image.new("RGBA", (600, 300), (0, 0, 0, 0))
    clear.paste((255, 0, 0, 255), (0, 0, 300, 300))  # the upper half once it is turned
    data = with_screenshot(tmp_path, clear, exif=orientation(6))
    report(tmp_path, [record(task(length=1), Stop())], screenshots=data, small=small)
    with Image.open(tmp_path / "report" / "images" / read(tmp_path, "steps-00000.js")["rows"][0]["image"]) as shown:
        assert (shown.mode, shown.size, shown.getexif().get(0x0112)) == ("RGB", (300, 600), None)
        seen = np.asarray(shown)[[100, 500], 150]
    assert np.allclose(seen, [(255, 0, 0), (255, 255, 255)], atol=8)


def test_a_step_that_was_not_reached_shows_task_and_screen(tmp_path: Path) -> None:
    """They come from the data folder, since there is no record."""
    example = load_benchmark("episodes", _written_episodes(tmp_path / "data"))
    steps = next(iter(example)).steps
    key = steps[0].episode_key
    records = [record(steps[0], Press(button="HOME"))]
    run = shown_run(write_run(tmp_path / "run", records, stop="first-mismatch", plan={key: (0, 1)}))
    pictures = Pictures(example.root, tmp_path / "report")
    write_report(tmp_path / "report", run, pictures, ["guievalkit"], tasks=PlannedTasks(example))
    first, second = read(tmp_path, "steps-00000.js")["rows"]
    assert first["recorded"] and not second["recorded"] and second["runs"][0]["ends"] == [int(NOT_REACHED)]
    assert second["task"]["instruction"] == "Start the timer" and second["task"]["reference"]["type"] == "STOP"
    assert second["image"]


def _written_episodes(folder: Path) -> Path:
    actions = {"0.png": {"type": "CLICK", "point": [150, 300]}, "1.png": {"type": "STOP"}}
    steps = [{"screenshot": name, "action": action} for name, action in actions.items()]
    folder.mkdir()
    for name in actions:
        Image.new("RGB", (300, 600)).save(folder / name)
    line = {"episode_id": "1", "instruction": "Start the timer", "frame": "pixels", "steps": steps}
    (folder / "episodes.jsonl").write_text(json.dumps(line) + "\n")
    return folder


@every_row(
    ("path", "size", "why"),
    [
        ("../secret.png", (300, 600), "leads out of its folder"),
        ("nothing.png", (300, 600), "does not exist"),
        ("e1/0.png", (300, 600), "its record says 300x600"),
        ("e1/torn.png", (1000, 1000), "truncated"),
    ],
)
def test_a_screenshot_that_cannot_be_shown_is_left_out_with_the_reason(
    tmp_path: Path, path: str, size: tuple[int, int], why: str
) -> None:
    data = with_screenshot(tmp_path, Image.new("RGB", (1000, 1000)))
    Image.new("RGB", (300, 600)).save(tmp_path / "secret.png")
    (data / "e1" / "torn.png").write_bytes((data / "e1" / "0.png").read_bytes()[:-20])
    written = report(tmp_path, [record(task(length=1, screenshot=path, screenshot_size=size), Stop())], screenshots=data)
    assert written.images == 0 and why in written.lacking[0]
    row = read(tmp_path, "steps-00000.js")["rows"][0]
    assert row["image"] == "" and why in row["why"]


def test_no_path_of_this_computer_is_in_a_report(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    message = f"cannot open {tmp_path}/data/e1/0.png or {tmp_path}/run/steps.jsonl or {Path.home()}/.cache/x"
    report(tmp_path, [failed(task(length=1), message)], screenshots=data, data=data)
    texts = [each.read_text(encoding="utf-8") for each in (tmp_path / "report").rglob("*.*") if each.is_file()]
    assert not any(str(tmp_path / "data") in each or str(Path.home()) + "/" in each for each in texts)
    assert not any(str(tmp_path / "run") in each for each in texts)
    assert "cannot open [...]/e1/0.png or" in read(tmp_path, "steps-00000.js")["rows"][0]["runs"][0]["samples"][0]["error"][1]


def test_a_report_is_rewritten_and_another_folder_never_touched(tmp_path: Path) -> None:
    count = CHUNK + 1
    report(tmp_path / "a", [record(task(step=each, length=count), Stop()) for each in range(count)])
    data = tmp_path / "a" / "report" / "data"
    assert (data / "steps-00001.js").exists()
    (tmp_path / "a" / "run" / "steps.jsonl").unlink()
    report(tmp_path / "a", three_steps())
    assert not (data / "steps-00001.js").exists() and read(tmp_path / "a", "index.js")["labels"] == ["e1"]
    site = tmp_path / "b" / "report"
    site.mkdir(parents=True)
    (site / "index.html").write_text("mine")
    with pytest.raises(UsageError, match="is not a report"):
        report(tmp_path / "b", three_steps())
    assert (site / "index.html").read_text() == "mine" and len(list(site.iterdir())) == 1


def test_the_pages_own_words_are_escaped_too(tmp_path: Path) -> None:
    report(tmp_path, three_steps(), model=f"</title><script>alert(1)</script> {tmp_path}/run")
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert page.count("<script") == 2 and "&lt;/title&gt;" in page and str(tmp_path) not in page
    assert read(tmp_path, "index.js")["runs"][0]["model"] == "</title><script>alert(1)</script> [...]"


def test_a_run_without_a_step_has_nothing_to_show(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no step of its plan"):
        shown_run(write_run(tmp_path, [], plan={EpisodeKey("demo", "", "e1"): range(3)}))


def test_protocols_are_the_runs_own_the_named_or_all(tmp_path: Path) -> None:
    run = shown_run(write_run(tmp_path, three_steps()))
    assert protocols_to_show(run, ()) == ["guievalkit"]
    assert protocols_to_show(run, ("ui-s1-sop", "ui-s1-sop")) == ["ui-s1-sop"]
    every = protocols_to_show(run, ("all",))
    assert every[0] == "guievalkit" and len(every) == len(set(every)) > 1
    with pytest.raises(UsageError, match="ui-s1-sop"):
        protocols_to_show(run, ("ui-s1-so",))


def test_prompts_share_their_lines_within_a_chunk(tmp_path: Path) -> None:
    run = shown_run(write_run(tmp_path / "run", three_steps()))
    prompters = [lambda one, known: (f"system\nstep {one.task.step_index}\nof {len(known)}", "")]
    write_report(tmp_path / "report", run, Pictures(None, tmp_path / "report"), ["guievalkit"], prompters=prompters)
    chunk = read(tmp_path, "steps-00000.js")
    assert chunk["lines"] == ["system", "step 0", "of 3", "step 1", "step 2"]
    assert [each["runs"][0]["prompt"] for each in chunk["rows"]] == [[0, 1, 2], [0, 3, 2], [0, 4, 2]]


BUILD = Path(__file__).parents[3] / "guieval" / "reports" / "pages" / "build.js"


def value_of(expression: str) -> Json:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    code = f"{BUILD.read_text(encoding='utf-8')}\nconsole.log(JSON.stringify({expression}));"
    return read_json(subprocess.run([node, "-e", code], capture_output=True, text=True, check=True).stdout)


def test_only_none_is_0_percent_and_only_all_is_100() -> None:
    parts = [0, 1, 14, 15, 16, 100, 15_000, 29_984, 29_985, 29_986, 29_999, 30_000]
    shown = value_of(f"{parts}.map((part) => percent(part, 30000))")
    assert shown == [f"{percentage(part / 30_000, '.1f')} %" for part in parts]
    assert shown[:2] == ["0.0 %", "< 0.1 %"] and shown[-2:] == ["> 99.9 %", "100.0 %"]


def test_a_number_with_its_noun() -> None:
    numbers = [0, 1, 2, 30_000]
    assert value_of(f"{numbers}.map((count) => counted(count, 'run'))") == [counted(number, "run") for number in numbers]


TEA = [Type(text="green tea")] * 3 + [Type(text="green tea.")] + [Type(text="something else entirely")]
ANSWERS: list[Action | None] = [*[at(500, 500)] * 5, at(505, 510), at(510, 490), *[at(100, 900)] * 6, *TEA, at(900, 100), None]


def decisions(folder: Path, *answers: Action | None, **more: Any) -> dict[str, Any]:
    report(folder, [record(task(length=1), *answers)], **more)
    run = read(folder, "steps-00000.js")["rows"][0]["runs"][0]
    found: dict[str, Any] = run.get("decisions", {})
    return found


def test_a_single_sample_comes_to_no_decisions(tmp_path: Path) -> None:
    assert decisions(tmp_path, at(500, 500)) == {}


def test_points_come_by_cluster_and_texts_by_prototype_with_counts(tmp_path: Path) -> None:
    found = decisions(tmp_path, *ANSWERS)
    first, second, tea, *rest = found["clusters"]
    assert (first["count"], second["count"], tea["count"]) == (7, 6, 4)
    assert first["points"] == [[500, 500, 5], [505, 510, 1], [510, 490, 1]] and second["points"] == [[100, 900, 6]]
    assert first["prototype"]["type"] == "CLICK" and not first["alone"]
    assert tea["texts"] == [["green tea", 3], ["green tea.", 1]] and tea["different"] == 2 and tea["points"] == []
    assert sorted((each["type"], each["count"], each["alone"]) for each in rest) == [("CLICK", 1, True), ("TYPE", 1, False)]
    assert found["n"] == len(ANSWERS) and found["unparseable"] == 1 and found["failed"] == 0
    assert "radius 70" in found["settings"]


def test_right_answers_are_reported_under_each_protocol(tmp_path: Path) -> None:
    near = [at(500, 600)] * 5  # right under guievalkit, wrong under ui-s1-sop
    found = decisions(tmp_path, at(500, 500), *near, protocols=(PROTOCOL, "ui-s1-sop"))
    assert {each["count"]: each["right"] for each in found["clusters"]} == {5: [5, 0], 1: [1, 1]}


def test_the_rounds_of_a_rollout_are_shown_together_and_of_many_samples_some(tmp_path: Path) -> None:
    of = task(length=1)
    rollout = tmp_path / "rollout"
    write_run(rollout / "a", [record(of, *[at(500, 500)] * 60)])
    write_run(rollout / "b", [record(of, *[at(100, 100)] * 40)])
    rounds = [{"directory": name, "seed": 0} for name in "ab"]
    (rollout / ROLLOUT).write_text(json.dumps({"schema": 1, "rounds": rounds}))
    shown = shown_run(rollout)
    written = write_report(tmp_path / "report", shown, Pictures(None, tmp_path / "report"), [PROTOCOL])
    assert written.notes == ["The samples of 2 rounds are shown together."]
    run = read(tmp_path, "steps-00000.js")["rows"][0]["runs"][0]
    assert len(run["samples"]) == 64 and run["more"] == 36
    assert [each["count"] for each in run["decisions"]["clusters"]] == [60, 40]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", [record(task(step=0), at(500, 500)), record(task(step=2), Stop())])


def chunk(folder: Path) -> Json:
    return value_in((folder / "data" / "steps-00000.js").read_text(encoding="ascii"))


def with_benchmark(run: Path, name: str | None) -> Path:
    """The run, whose manifest names another benchmark, or none."""
    with edited(run / "manifest.json") as manifest:
        del manifest["config"]["bench"]
        manifest["config"] |= {} if name is None else {"bench": name}
    return run


def test_a_report_is_written_into_the_run(run: Path, guieval: CommandLine, tmp_path: Path) -> None:
    data = drawn(tmp_path / "data", "e1/0.png")
    done = guieval("report", run, "--data", data, "--protocol", "guievalkit", "--protocol", "ui-s1-sop")
    assert done.code == 0
    assert "3 steps of 1 episode, 1 screenshot" in done.out and str(run / "report" / "index.html") in done.out
    assert "missing: 1 screenshot, first:" in done.err
    rows = chunk(run / "report")["rows"]
    assert [bool(row.get("image")) for row in rows] == [True, False, False]
    assert read_json((run / "manifest.json").read_text())["config"]["data"] is None  # the run is left as it was


def test_prompts_are_rebuilt_or_reported_as_missing(run: Path, guieval: CommandLine) -> None:
    """The first step's prompt can be rebuilt; a step before the third one has no record."""
    assert guieval("report", run, "--no-images").code == 0
    chunk_values = chunk(run / "report")
    first, second, third = (row["runs"] for row in chunk_values["rows"])
    assert isinstance(first, list) and isinstance(second, list) and isinstance(third, list)
    assert "Goal of e1" in "\n".join(str(chunk_values["lines"][each]) for each in first[0]["prompt"])
    assert second[0]["note"] == "There is no record of this step."
    assert third[0]["prompt"] == [] and "no record of step 1 before it" in third[0]["note"]


@every_row(
    ("arguments", "message"),
    [
        (("nothing",), "the run directory 'nothing' does not exist"),
        (("{run}", "--protocol", "ui-s1-so"), "did you mean 'ui-s1-sop'"),
        (("{of_androidcontrol}", "--data", "nowhere"), "does not exist"),
        (("{run}", "--out", "{run}"), "is not a report; choose another --out"),
        (("{run}", "--against", "{run}/nothing"), "nothing' does not exist"),
    ],
)
def test_a_mistake_is_a_sentence(run: Path, tmp_path: Path, guieval: CommandLine, arguments: list[str], message: str) -> None:
    other = with_benchmark(shutil.copytree(run, tmp_path / "other"), "androidcontrol")
    done = guieval("report", *(each.format(run=run, of_androidcontrol=other) for each in arguments))
    assert (done.code, done.out) == (2, "") and message in done.err
    assert done.err.startswith("guieval: ") and done.err.count("\n") == 1


@pytest.mark.parametrize("name", [None, "androidcontrol"])
def test_data_that_cannot_be_opened_leave_the_images_out(run: Path, guieval: CommandLine, name: str | None) -> None:
    done = guieval("report", with_benchmark(run, name))
    assert done.code == 0 and "there are no screenshots" in done.err
    assert "there are no screenshots" in str(chunk(run / "report")["rows"][0]["why"])


def test_a_report_that_cannot_be_written_names_the_file(run: Path, guieval: CommandLine, tmp_path: Path) -> None:
    command = ("report", run, "--no-images", "--out", tmp_path / "out")
    assert guieval(*command).code == 0
    (tmp_path / "out" / "app.js").unlink()
    (tmp_path / "out" / "app.js").mkdir()
    message = guieval.sentence(*command)
    assert "app.js" in message and "cannot be written" in message
