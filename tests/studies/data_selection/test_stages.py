"""UI-R1's stages on runs whose right and wrong answers are known, nested subsets, and the command that selects."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from guieval.data.benchmark import EpisodeRef
from guieval.data.sample_sets import get_sample_set
from guieval.data.selection import Choice, select
from guieval.errors import UsageError
from guieval.registry import load_benchmark
from guieval.scoring.score import evaluate_run
from guieval.steps import EpisodeKey, StepRecord
from guieval.studies.data_selection.candidates import Candidate, read_candidates
from guieval.studies.data_selection.curated_files import HYPERTRACK_SIZES, nested_episodes
from guieval.studies.data_selection.stages import LabelledPart, Quota, Recipe, curate, get_preset, read_quota
from tests.command_line import CommandLine
from tests.made_runs import record, write_run
from tests.rows import every_row
from tests.studies.data_selection import made_answers as made
from tests.studies.data_selection.made_answers import BACK, OPEN, SCROLL, TARGET, TYPE, answer, control_run, target, trajectory

TABLE_5 = {"CLICK": 101, "SCROLL": 5, "TYPE": 2, "BACK": 9, "OPEN": 19}


def grounding_records(hard: int) -> list[StepRecord]:
    """``hard`` missed mobile targets of each element, and as many hit, and desktop ones that are missed."""
    mobile = [(f"{element}-{n}", element, n < hard) for element in ("icon", "text") for n in range(2 * hard)]
    records = [answer(target(name, element=element), right=not missed) for name, element, missed in mobile]
    return records + [answer(target(f"desktop-{n}", platform="desktop"), right=False) for n in range(5)]


def control_records(hard: int) -> list[StepRecord]:
    """``hard`` episodes with every step missed, then as many with every step matched."""
    episodes = [trajectory(f"e{episode:03}", made.EVERY) for episode in range(2 * hard)]
    return [answer(task, right=episode >= hard) for episode, tasks in enumerate(episodes) for task in tasks]


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> list[Candidate]:
    folder = tmp_path_factory.mktemp("curated")
    runs = [made.grounding_run(folder / "spot", grounding_records(60)), control_run(folder / "control", control_records(20))]
    return list(read_candidates(runs).steps)


def test_the_preset_gives_the_composition_of_table_5_and_a_reason_for_each_step(steps: list[Candidate]) -> None:
    curated = curate(steps, get_preset("ui-r1"))
    assert len(curated.chosen) == 136 and curated.composition == TABLE_5
    assert all(not each.step.exact_match for each in curated.chosen)
    clicks = [each.step for each in curated.chosen if each.step.type == "CLICK"]
    assert {step.groups["platform"] for step in clicks} == {"mobile"}, "clicks are ScreenSpot mobile's alone"
    assert Counter(step.groups["element"] for step in clicks) == {"icon": 51, "text": 50}
    assert {each.step.dataset for each in curated.chosen if each.step.type != "CLICK"} == {"androidcontrol"}
    # 240 mobile targets and 40 episodes of 7 steps without a click; half of both are hard; 20 WAIT and 20 LONG_PRESS of these
    assert curated.left == {"recorded": 565, "quality": 520, "difficulty": 260, "not rare": 220, "diversity": 136}
    back = next(each for each in curated.chosen if each.step.button == "BACK")
    assert list(back.why) == ["quality", "difficulty", "diversity"]
    assert back.why["quality"] == "no click, of androidcontrol"
    assert back.why["difficulty"].startswith("wrong under guievalkit in run control")
    assert back.why["diversity"] == "one of 9 for BACK, of 20 there were"


def test_a_selection_depends_on_the_seed_and_not_on_the_order_of_the_steps(steps: list[Candidate]) -> None:
    def names(some: list[Candidate], seed: int) -> set[str]:
        return {str(each.step.key) for each in curate(some, replace(get_preset("ui-r1"), seed=seed)).chosen}

    assert names(steps, 1) == names(steps[::-1], 1)
    assert names(steps, 1) != names(steps, 2)


def test_a_cell_with_too_few_steps_is_named_with_its_numbers(tmp_path: Path) -> None:
    runs = [made.grounding_run(tmp_path / "spot", grounding_records(60)), control_run(tmp_path / "control", control_records(7))]
    steps = read_candidates(runs).steps
    with pytest.raises(UsageError, match=r"too few steps to choose from: BACK 7 of 9, OPEN 7 of 19; --allow-fewer"):
        curate(steps, get_preset("ui-r1"))
    fewer = curate(steps, get_preset("ui-r1"), allow_fewer=True)
    assert fewer.composition == {**TABLE_5, "BACK": 7, "OPEN": 7}


def test_where_one_element_is_scarce_the_other_fills_up(tmp_path: Path) -> None:
    texts = [answer(target(f"t{n}", element="text"), right=False) for n in range(9)]
    icons = [answer(target(f"i{n}", element="icon"), right=False) for n in range(2)]
    steps = read_candidates([made.grounding_run(tmp_path / "spot", texts + icons)]).steps
    curated = curate(steps, Recipe(quotas=(Quota(6, "CLICK"),)))
    assert Counter(each.step.groups["element"] for each in curated.chosen) == {"text": 4, "icon": 2}


def test_a_step_that_nobody_answered_is_neither_hard_nor_lost_silently(tmp_path: Path) -> None:
    first, second, third, _ = trajectory("a", [SCROLL, BACK, OPEN, TYPE])
    run = control_run(tmp_path / "run", [answer(first, right=False), record(second), answer(third, right=True)])
    candidates = read_candidates([run])
    assert (candidates.unrecorded, candidates.unanswered) == (1, 2)
    assert [each.step.type for each in curate(candidates.steps, Recipe()).chosen] == ["SCROLL"]


def test_a_later_failure_replaces_no_answer(tmp_path: Path) -> None:
    first, *_ = trajectory("a", [SCROLL, BACK])
    run = control_run(tmp_path / "run", [answer(first, right=False), record(first)])
    assert [step.verdict for step in read_candidates([run]).steps] == ["wrong"]


def test_the_protocol_decides_what_is_hard(tmp_path: Path) -> None:
    """A click 20 thousandths outside the box: wrong for ScreenSpot's rule, near enough for one that takes a distance."""
    task = target("near").model_copy(update={"action": TARGET.model_copy(update={"point": (310.0, 200.0)})})
    run = made.grounding_run(tmp_path / "run", [answer(task, right=True)])
    assert [step.exact_match for step in read_candidates([run]).steps] == [False]
    assert [step.exact_match for step in read_candidates([run], "guievalkit").steps] == [True]


def test_the_last_record_of_a_step_counts_and_steps_outside_the_plan_do_not(tmp_path: Path) -> None:
    first, second = trajectory("a", [SCROLL, BACK])
    records = [answer(first, right=False), answer(second, right=False), answer(first, right=True)]
    run = write_run(tmp_path / "run", records, plan={first.episode_key: (0,)}, protocol="guievalkit")
    candidates = read_candidates([run])
    assert [(step.key.step_index, step.exact_match) for step in candidates.steps] == [(0, True)]
    assert candidates.unrecorded == 0


def test_two_runs_of_one_step_are_refused(tmp_path: Path) -> None:
    runs = [made.grounding_run(tmp_path / name, [answer(target("a"), right=False)]) for name in ("one", "two")]
    with pytest.raises(UsageError, match=r"both answer step screenspot/a#0"):
        read_candidates(runs)


@pytest.fixture
def reasoned(tmp_path: Path) -> list[Candidate]:
    """Missed clicks whose answers hold 10, 20, ... 60 characters of reasoning, and a hit one with 500."""
    records = [answer(target(f"t{n}"), right=False, thought="x" * 10 * n) for n in (3, 1, 6, 2, 5, 4)]
    records.append(answer(target("hit"), right=True, thought="x" * 500))
    return list(read_candidates([made.grounding_run(tmp_path / "run", records)]).steps)


def test_the_longest_reasoning_among_the_failed_comes_first(reasoned: list[Candidate]) -> None:
    top = curate(reasoned, Recipe(stages=("difficulty",), order="reasoning", top=3))
    assert sorted(each.step.reasoning_length for each in top.chosen) == [40, 50, 60]
    within = curate(reasoned, Recipe(quotas=(Quota(2, "CLICK"),), order="reasoning"))
    assert sorted(each.step.reasoning_length for each in within.chosen) == [50, 60]
    with pytest.raises(UsageError, match=r"any 6 of 7; --allow-fewer"):
        curate(reasoned, Recipe(order="reasoning", top=7))


def test_without_reasoning_there_is_nothing_to_sort_by(steps: list[Candidate]) -> None:
    with pytest.raises(UsageError, match="no answer of these steps has any reasoning"):
        curate(steps, Recipe(order="reasoning", top=3))


def test_each_stage_can_be_left_out(steps: list[Candidate]) -> None:
    assert len(curate(steps, Recipe(stages=("quality",))).chosen) == 525, "no click of the trajectories, desktop targets too"
    assert len(curate(steps, Recipe(stages=("difficulty",))).chosen) == 285
    assert {step.step.type for step in curate(steps, Recipe(stages=("diversity",))).chosen}.isdisjoint({"WAIT", "LONG_PRESS"})


def test_other_actions_can_be_kept_to_so_many_drawn_episodes(steps: list[Candidate]) -> None:
    recipe = Recipe(stages=("quality",), others=(LabelledPart("androidcontrol"),), other_episodes=3)
    drawn = {each.step.key.episode_id for each in curate(steps, recipe).chosen if each.step.type != "CLICK"}
    more = curate(steps, replace(recipe, other_episodes=6))
    assert len(drawn) == 3
    assert drawn < {each.step.key.episode_id for each in more.chosen if each.step.type != "CLICK"}


def test_a_quota_for_each_value_leaves_out_what_an_earlier_quota_took(steps: list[Candidate]) -> None:
    quotas = tuple(read_quota(text, ["element", "platform"]) for text in ("SCROLL=3", "CLICK+element=4", "action=2"))
    curated = curate(steps, Recipe(quotas=quotas))
    assert [(cell.key, cell.taken) for cell in curated.cells] == [
        *(("SCROLL", 3), ("CLICK+element:icon", 4), ("CLICK+element:text", 4)),
        *(("BACK", 2), ("HOME", 2), ("OPEN", 2), ("TYPE", 2)),
    ]


@every_row(
    ("text", "message"),
    [
        *(("SCROLL", "written KEY=N"), ("SCROLL=0", "N at least 1")),
        ("SCROL=3", r"'SCROL', which is neither an action nor a label of these steps \(did you mean 'SCROLL'\?\)"),
        *(("elemnt:icon=3", "nor a label of these steps"), ("SCROLL+BACK=3", "names the actions SCROLL and BACK")),
        ("SCROLL+action=3", "the action SCROLL and every action at once"),
    ],
)
def test_a_quota_that_means_nothing_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_quota(text, ["element"])


def test_unknown_names_in_a_recipe_are_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="unknown preset 'ui-r2'"):
        get_preset("ui-r2")
    with pytest.raises(UsageError, match="two quotas are given for 'BACK'"):
        Recipe(quotas=(Quota(1, "BACK"), Quota(2, "BACK")))


REFS = [EpisodeRef(EpisodeKey("made-up", "", f"e{n}"), 5) for n in range(9000)]


def test_hypertracks_ten_sizes_lie_in_each_other() -> None:
    subsets = nested_episodes(REFS, HYPERTRACK_SIZES)
    assert list(subsets) == [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192]
    keys = [{ref.key for ref in subset} for subset in subsets.values()]
    assert [len(each) for each in keys] == list(subsets)
    assert all(small < large for small, large in pairwise(keys))


def test_the_seed_decides_and_the_listing_does_not() -> None:
    def drawn(refs: list[EpisodeRef], seed: int) -> set[EpisodeKey]:
        return {ref.key for ref in nested_episodes(refs, [64], seed)[64]}

    assert drawn(REFS, 1) == drawn(REFS[::-1], 1)
    assert drawn(REFS, 1) != drawn(REFS, 2)


def test_every_episode_is_as_likely() -> None:
    """Over 400 seeds each of 20 episodes is among 5 in 100 of them, give or take 4 standard deviations (8.7 each)."""
    counts = dict.fromkeys((ref.key for ref in REFS[:20]), 0)
    for seed in range(400):
        for ref in nested_episodes(REFS[:20], [5], seed)[5]:
            counts[ref.key] += 1
    assert sum(counts.values()) == 2000
    assert all(abs(count - 100) < 35 for count in counts.values())


@every_row(
    ("sizes", "message"),
    [([], "at least one size"), ([4, 0], "0 is below 1"), ([4, 4], "4 is named twice"), ([9001], "from the 9,000")],
)
def test_sizes_that_cannot_be_are_refused(sizes: list[int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        nested_episodes(REFS, sizes)


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
    assert evaluate_run(run, choice=Choice(episodes=tmp_path / "hard.txt"))["success rate"].n == 2
