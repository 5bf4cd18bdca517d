"""``guieval study select``: what it writes is what runs, scores and lists of steps take."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guieval.data.sample_sets import get_sample_set
from guieval.data.selection import Choice, select
from guieval.registry import load_benchmark
from guieval.scoring.score import evaluate_run
from tests.command_line import CommandLine
from tests.made_runs import write_run
from tests.rows import every_row
from tests.studies.data_selection import made_answers as made
from tests.studies.data_selection.made_answers import BACK, OPEN, SCROLL, answer, control_run, trajectory


@pytest.fixture
def control(tmp_path: Path) -> Path:
    """Three episodes of three steps: all of the first missed, the scroll of the second, nothing of the third."""
    hard = {("a", 0), ("a", 1), ("a", 2), ("b", 0)}
    tasks = [task for name in "abc" for task in trajectory(name, [SCROLL, BACK, OPEN])]
    records = [answer(task, right=(task.episode_id, task.step_index) not in hard) for task in tasks]
    return control_run(tmp_path / "control", records)


def test_the_sample_set_holds_the_selected_steps_of_a_run(guieval: CommandLine, control: Path, tmp_path: Path) -> None:
    file = tmp_path / "hard.json"
    done = guieval("study", "select", control, "--out", file)
    assert done.code == 0
    assert "selected: 4 steps: SCROLL 2, BACK 1, OPEN 1" in done.out
    written = get_sample_set(str(file))
    assert {name: tuple(written.counted(name)) for name in written.ids} == {"a": (0, 1, 2), "b": (0,)}
    assert written.types == {"SCROLL": 2, "OPEN": 1, "PRESS": 1}
    scored = evaluate_run(control, choice=Choice(sample_set=str(file)))
    assert scored.steps.startswith("all 2 episodes of sample set hard (sha256 ")


def test_the_manifest_states_the_request_and_why_each_step_is_in(guieval: CommandLine, control: Path, tmp_path: Path) -> None:
    assert guieval("study", "select", control, "--per", "SCROLL=1", "--seed", "3", "--out", tmp_path / "hard.json").code == 0
    head, *lines = map(json.loads, (tmp_path / "hard.manifest.jsonl").read_text().splitlines())
    assert head["recipe"]["seed"] == 3
    assert head["left"] == {"recorded": 9, "quality": 9, "difficulty": 4, "not rare": 4, "diversity": 1}
    assert head["cells"] == [{"key": "SCROLL", "wanted": 1, "available": 2, "taken": 1}]
    assert [line["why"]["diversity"] for line in lines] == ["one of 1 for SCROLL, of 2 there were"]
    assert lines[0]["why"]["difficulty"].startswith("wrong under guievalkit in run control")


def test_several_benchmarks_are_written_as_one_set_each(guieval: CommandLine, control: Path, tmp_path: Path) -> None:
    spot = made.grounding_run(tmp_path / "spot", [answer(made.target(name), right=False) for name in "xy"])
    assert guieval("study", "select", spot, control, "--out", tmp_path / "hard.json").code == 0
    assert get_sample_set(str(tmp_path / "hard-screenspot.json")).ids == {"x": 1, "y": 1}
    assert set(get_sample_set(str(tmp_path / "hard-androidcontrol-low.json")).ids) == {"a", "b"}
    assert not (tmp_path / "hard.json").exists()


def test_a_list_of_steps_is_what_episodes_takes(guieval: CommandLine, control: Path, tmp_path: Path) -> None:
    file = tmp_path / "hard.txt"
    assert guieval("study", "select", control, "--out", file).code == 0
    assert file.read_text() == "a#0\na#1\na#2\nb#0\n"
    scored = evaluate_run(control, choice=Choice(episodes=file))
    assert scored.steps.endswith("as listed in hard.txt, of a run over all episodes of the run (3)")


def test_too_few_steps_end_with_a_sentence_and_write_nothing(guieval: CommandLine, control: Path, tmp_path: Path) -> None:
    file = tmp_path / "hard.json"
    error = guieval.sentence("study", "select", control, "--per", "BACK=4", "--out", file)
    assert error == "guieval: there are too few steps to choose from: BACK 1 of 4; --allow-fewer takes what there is\n"
    assert not file.exists()
    assert guieval("study", "select", control, "--per", "BACK=4", "--allow-fewer", "--out", file).code == 0
    assert get_sample_set(str(file)).steps == 1


def test_the_preset_is_known_by_its_name(guieval: CommandLine, control: Path) -> None:
    sentence = guieval.sentence("study", "select", control, "--preset", "ui-r1")
    assert "CLICK 0 of 101, SCROLL 2 of 5, TYPE 0 of 2, BACK 1 of 9, OPEN 1 of 19" in sentence


def test_clicks_of_trajectories_count_where_their_boxes_are_marked_clean(guieval: CommandLine, tmp_path: Path) -> None:
    run = control_run(tmp_path / "run", [answer(task, right=False) for task in trajectory("a", [made.TARGET, BACK])])
    assert "selected: 1 step: BACK 1" in guieval("study", "select", run).out
    assert "CLICK 1" in guieval("study", "select", run, "--clean-boxes", "androidcontrol").out
    assert "selected: 1 step: BACK 1" in guieval("study", "select", run, "--clean-boxes", "androidcontrol:platform=mobile").out


@every_row(
    ("arguments", "message"),
    [
        ((), "name the run directories to select from, or --nested"),
        (("--nested", "4"), "--nested draws from a benchmark: name it with --bench"),
        (("--nested", "4", "--bench", "demo", "--per", "BACK=1"), "--per is for runs alone"),
        (("--nested", "4,x", "--bench", "demo", "--out", "t.json"), "got 'x'"),
        (("--nested", "4", "--bench", "demo"), "--out names the sample sets to write"),
    ],
)
def test_mistakes_end_with_one_sentence(guieval: CommandLine, arguments: tuple[str, ...], message: str) -> None:
    assert message in guieval.sentence("study", "select", *arguments)


def test_mistakes_about_runs_end_with_one_sentence(guieval: CommandLine, control: Path, tmp_path: Path) -> None:
    for arguments, message in {
        ("--stages", "quality,dificulty"): "unknown stage 'dificulty' (did you mean 'difficulty'?)",
        ("--order", "length"): "unknown order 'length'",
        ("--balance", "elemnt"): "--balance 'elemnt' is not a label of these steps",
        ("--per", "BACK=1", "--top", "3"): "quotas fix the number of steps of each kind",
        ("--clean-boxes", ":x"): "a source is written DATASET or DATASET:LABEL=VALUE",
        ("--bench", "demo"): "--bench is for --nested alone",
        ("--out", str(tmp_path / "hard.csv")): "must end in .json",
        ("--stages", "difficulty", "--per", "BACK=1"): "quotas belong to the diversity stage",
    }.items():
        assert message in guieval.sentence("study", "select", control, *arguments)


def test_nested_subsets_of_a_benchmark_lie_in_each_other(guieval: CommandLine, tmp_path: Path) -> None:
    how = ("--bench", "demo", "--data", tmp_path / "demo", "--set", "episodes=12", "--split", "all")
    done = guieval("study", "select", "--nested", "2,4,8", *how, "--seed", "5", "--out", tmp_path / "train.json")
    assert done.code == 0, done.err
    sets = {size: get_sample_set(str(tmp_path / f"train-{size}.json")) for size in (2, 4, 8)}
    assert {size: len(each.ids) for size, each in sets.items()} == {2: 2, 4: 4, 8: 8}
    assert set(sets[2].ids) < set(sets[4].ids) < set(sets[8].ids)
    benchmark = load_benchmark("demo", tmp_path / "demo", episodes=12)
    chosen = select(benchmark, Choice(sample_set=str(tmp_path / "train-4.json")))
    assert {ref.key.episode_id for ref in chosen.refs} == set(sets[4].ids)
    assert all(len(chosen.plan[ref.key]) == ref.length for ref in chosen.refs)
    error = guieval.sentence("study", "select", "--nested", "13", *how, "--out", tmp_path / "train.json")
    assert error == "guieval: a subset of 13 episodes cannot be drawn from the 12 that there are\n"


def test_the_journals_order_does_not_show_in_the_files(guieval: CommandLine, tmp_path: Path) -> None:
    """Records stand in the order in which a server answered, which is another one in every run of the same."""
    tasks = [task for name in "abcd" for task in trajectory(name, [SCROLL, BACK])]
    plan = {task.episode_key: range(2) for task in tasks}
    written = []
    for place, order in enumerate((tasks, tasks[::-1])):
        folder = tmp_path / str(place)
        folder.mkdir()
        records = [answer(task, right=False) for task in order]
        run = write_run(folder / "run", records, plan=plan, benchmark="androidcontrol-low", protocol="guievalkit")
        assert guieval("study", "select", run, "--per", "BACK=2", "--out", folder / "hard.json").code == 0
        written.append([(folder / name).read_bytes() for name in ("hard.json", "hard.manifest.jsonl")])
    assert written[0] == written[1]


def test_an_id_in_several_subsets_needs_a_list_of_steps(guieval: CommandLine, tmp_path: Path) -> None:
    tasks = [trajectory("a", [BACK])[0].model_copy(update={"subset": subset}) for subset in ("idd", "ood")]
    run = control_run(tmp_path / "run", [answer(task, right=False) for task in tasks])
    error = guieval.sentence("study", "select", run, "--out", tmp_path / "hard.json")
    assert "has the episode 'a' in several subsets" in error and "--out hard.txt" in error
    assert guieval("study", "select", run, "--out", tmp_path / "hard.txt").code == 0
    assert (tmp_path / "hard.txt").read_text() == "idd/a#0\nood/a#0\n"
    assert evaluate_run(run, choice=Choice(episodes=tmp_path / "hard.txt")).summary.episodes == 2
