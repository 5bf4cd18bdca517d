"""Rollouts: which rounds are drawn, what is refused, and that the truth of a scripted policy comes back from them."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guieval import rollout
from guieval.actions import Action, Click, Point, Press, Scroll, Type, Wait
from guieval.errors import UsageError
from guieval.evaluation import ActionEvaluator
from guieval.journal import PACKED_STEPS, RunFolder
from guieval.journal.run_folders import rounds_of
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import benchmarks, load_benchmark, load_model
from guieval.scoring.score import evaluate_run
from guieval.settings import RunConfig
from guieval.steps import StepTaskModel
from guieval.studies.decisions.clustering import ClusterSettings
from guieval.studies.decisions.executions import read_executions
from guieval.studies.decisions.measures import measure, pass_at
from guieval.studies.decisions.subset import get_subset, list_subsets
from guieval.studies.rollouts import PAPER_SEEDS, plan_rounds
from tests.command_line import CommandLine
from tests.rows import every_row

MODEL = "agentcpm-gui-8b"
WARM = {"temperature": 0.8}
WITHOUT = 0.05
"""Share of replies without an action: they are not a decision, but none of them is right."""


def config(**more: Any) -> RunConfig:
    return RunConfig(**{"model": MODEL, "bench": "demo", "samples": 64, "sampling": WARM, **more})


def test_rounds_differ_in_nothing_but_the_seed_and_are_compact() -> None:
    rounds = plan_rounds(config(), 8)
    assert [each.seed for each in rounds] == list(PAPER_SEEDS)
    for each in rounds:
        assert each.config.sampling.request == {**WARM, "seed": each.seed} and each.config.tracking.compact
        assert each.config.having(sampling=WARM, compact=False) == config()
    assert [each.seed for each in plan_rounds(config(), 2)] == [7278727, 7779397]
    for seeds in ((5, 500), (100, 164), (5, 2**63 - 64)):  # exactly a round apart, and as large as the last sample allows
        assert tuple(each.seed for each in plan_rounds(config(), seeds=seeds)) == seeds


@every_row(
    ("settings", "rounds", "seeds", "message"),
    [
        ({}, 9, (), r"9 rounds need 9 seeds, and there are 8 \(those of the paper\)"),
        ({}, 3, (1, 100), "3 rounds need 3 seeds, and there are 2"),
        ({}, 0, (), "0 rounds draw no samples"),
        ({}, None, (5, 2**63 - 64 + 1), "the seed 9223372036854775745 is too large"),
        ({}, None, (100, 163), "the seeds 100 and 163 are closer together than the 64 samples"),
        ({}, None, (100, 100), "the seeds 100 and 100 are closer"),
        ({"resampling": {"temperature": 1.0}}, 2, (), "in a rollout use sampling"),
        ({"sampling": {"seed": 1}}, 2, (), "each round's own"),
        ({"sampling": {"temperature": 0}}, 2, (), "128 samples of greedy decoding"),
    ],
)
def test_samples_that_are_no_independent_draws_are_refused(
    settings: dict[str, Any], rounds: int | None, seeds: tuple[int, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        plan_rounds(config(**settings), rounds, seeds)


def test_the_preset_is_the_papers_table_17() -> None:
    assert list_subsets() == ["guievalkit-table-17"]
    subset = get_subset("guievalkit-table-17")
    assert list(subset.episodes.values()) == [101, 73, 44, 85, 116] and sum(subset.episodes.values()) == 419
    assert sum(subset.steps.values()) == 3438 and subset.episodes.keys() == subset.steps.keys()
    printed = {"androidcontrol": 7.55, "aitz": 9.92, "gui-odyssey": 14.39, "cagui": 7.96, "hypertrack": 5.53}
    assert {name: round(subset.steps[name] / subset.episodes[name], 2) for name in subset.steps} == printed
    assert subset.limit("aitz") == 73
    for name in printed:
        assert benchmarks()[name].dataset == name
    with pytest.raises(UsageError, match="has no data set 'demo'"):
        subset.limit("demo")
    with pytest.raises(UsageError, match=r"there is no preset 'table-17'.*guievalkit-table-17"):
        get_subset("table-17")


def alternatives_to(task: StepTaskModel) -> list[Action]:
    """Actions of other types than the reference, and a point far from it: each is another decision, and wrong."""
    here = task.action.point if isinstance(task.action, Click) else Point(500.0, 500.0)
    far = Click(point=Point(900.0 if here.x < 500 else 100.0, 900.0 if here.y < 500 else 100.0))
    others: list[Action] = [far, Press(button="BACK"), Type(text="zqxj vwkq"), Wait()]
    others.append(Scroll(point=Point(500, 500), direction="left"))
    evaluator = ActionEvaluator("guievalkit")
    same = [each for each in others if each.type == task.action.type and not isinstance(each, Click)]
    return [each for each in others if each not in same and not evaluator.evaluate(task, each).exact_match]


class Truth:
    """A distribution for every step, in a file as the mock server reads it, and what it implies."""

    def __init__(self, file: Path) -> None:
        model, benchmark = load_model(MODEL), load_benchmark("demo")
        rng = np.random.default_rng(5)
        self.diversity: dict[object, float] = {}
        self.right: dict[object, float] = {}
        lines = []
        for ref in benchmark.index():
            for task in benchmark.load(ref).steps:
                message = any(each in model.action_space for each in (task.action, *task.alternatives))
                others = [each for each in alternatives_to(task) if each in model.action_space]
                options = [*(["reference"] if message else []), *(each.model_dump(mode="json") for each in others)]
                shares = rng.dirichlet([3.0] + [1.0] * int(rng.integers(1, len(options))))
                drawn: list[dict[str, Any]] = [{"weight": WITHOUT, "action": None}]
                for each, share in zip(options, shares, strict=False):
                    drawn.append({"weight": (1 - WITHOUT) * share, "action": each, "spread": 4.0})
                lines.append(json.dumps({"key": str(task.key), "draws": drawn}))
                self.diversity[task.key] = -float((shares * np.log(shares)).sum())
                self.right[task.key] = (1 - WITHOUT) * shares[0] if message else 0.0
        file.write_text("\n".join(lines) + "\n")


def serve(file: Path) -> MockServer:
    return MockServer(MockSettings(policy="distribution", script=file, model=MODEL, benchmark="demo", served_models=(MODEL,)))


def rolling(server: MockServer, out: Path) -> list[str | Path]:
    where: list[str | Path] = ["--base-url", server.base_url, "--out", out, "--quiet"]
    return ["--model", MODEL, "--bench", "demo", "--set", "sampling.temperature=0.8", *where]


def test_the_truth_of_a_scripted_policy_comes_back(tmp_path: Path, guieval: CommandLine) -> None:
    truth = Truth(tmp_path / "truth.jsonl")
    out = tmp_path / "rollout"
    with serve(tmp_path / "truth.jsonl") as server:
        done = guieval("study", "rollout", *rolling(server, out), "--limit", "3", "--rounds", "2", "--samples", "64")
    assert done.code == 0, done
    assert "all rounds" in done.out and f"guieval study decisions {out}" in done.out
    found = measure(read_executions(out), ClusterSettings(min_samples=1))
    steps, n = len(found), 128
    assert steps >= 15 and (found.n == n).all() and not found.failed.any()
    rounds = [{record.task.key: record.samples for record in RunFolder(each).records} for each in rounds_of(out)]
    assert all(rounds[0][key] != rounds[1][key] for key in rounds[0])

    right = np.array([truth.right[key] for key in found.keys])
    error = math.sqrt((right * (1 - right)).sum() / n) / steps
    assert abs(found.stability.mean() - right.mean()) < 4 * error
    per_step = np.sqrt(right * (1 - right) / n) + 1e-9
    assert (abs(found.stability - right) < 4.5 * per_step + 1 / n).all()

    diversity = np.array([truth.diversity[key] for key in found.keys])
    bias = (found.decisions - 1) / (2 * (1 - WITHOUT) * n)  # Miller and Madow's: a plug-in entropy lies low by this much
    assert abs((found.diversity + bias).mean() - diversity.mean()) < 0.03
    assert abs(found.diversity - diversity).max() < 0.35

    for k in (1, 4, 16):
        assert pass_at(found, k).measured.value == pytest.approx((1 - (1 - right) ** k).mean(), abs=0.05)


def test_a_rollout_is_resumed_round_by_round_and_each_round_is_a_run(tmp_path: Path, guieval: CommandLine) -> None:
    Truth(tmp_path / "truth.jsonl")
    out = tmp_path / "rollout"
    with serve(tmp_path / "truth.jsonl") as server:
        arguments = [*rolling(server, out), "--limit", "2", "--mode", "soeval", "--rounds", "3", "--samples", "4"]
        assert guieval("study", "rollout", *arguments).code == 0
        whole = {each.task.key: (each.actions, each.counts.tolist()) for each in read_executions(out)}
        first, second, third = rounds_of(out)
        assert evaluate_run(first).summary.complete
        assert RunFolder(second).manifest.to_json()["config"]["sampling"]["request"]["seed"] == 7779397
        packed = first / PACKED_STEPS
        packed.write_bytes(packed.read_bytes()[:-7])
        shutil.rmtree(third)
        assert [each.complete for each in rollout(resume=out)] == [True] * 3
        assert {each.task.key: (each.actions, each.counts.tolist()) for each in read_executions(out)} == whole
        assert "already has" in guieval.sentence("study", "rollout", *arguments)
        assert "leave out --seeds" in guieval.sentence("study", "rollout", "--resume", out, "--seeds", "1,2")
        assert "it differs in" in guieval.sentence("study", "rollout", "--resume", out, "--set", "sampling.temperature=0.2")
    assert "has no rollout" in guieval.sentence("study", "rollout", "--resume", first)
    done = guieval("score", first)
    assert done.code == 0 and "pass@4" in done.out
    assert guieval("report", out, "--no-images").code == 0
    asked = ("study", "rollout", "--model", MODEL, "--bench", "demo")
    assert "expected whole numbers" in guieval.sentence(*asked, "--seeds", "1,x")
    assert "leave out --limit" in guieval.sentence(*asked, "--limit", "1", "--preset", "guievalkit-table-17")


def test_several_benchmarks_are_a_rollout_each_and_are_resumed_together(
    tmp_path: Path, guieval: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their data are found where ``guieval data download`` puts them, androidcontrol-low's in the folder of its data set."""
    monkeypatch.chdir(tmp_path)
    for name in ("androidcontrol", "aitz"):
        (tmp_path / "data" / name).mkdir(parents=True)
        benchmarks()[name].write_example(tmp_path / "data" / name)
    out, drawn = tmp_path / "several", ("--model", MODEL, "--bench", "aitz", "--bench", "androidcontrol-low")
    with MockServer(MockSettings(policy="random", model=MODEL)) as server:
        how = ("--set", "sampling.temperature=1", "--rounds", "2", "--samples", "2", "--base-url", server.base_url, "--quiet")
        assert "aitz is given twice" in guieval.sentence("study", "rollout", *drawn, "--bench", "aitz", *how)
        begun = guieval("study", "rollout", *drawn, *how, "--preset", "guievalkit-table-17", "--out", out)
        assert begun.code == 0 and "guieval study decisions several --pool" in begun.out.replace(f"{tmp_path}/", "")
        shutil.rmtree(out / "aitz" / "seed-7779397")
        assert "leave out --bench aitz" in guieval.sentence("study", "rollout", "--resume", out, *drawn)
        assert guieval("study", "rollout", "--resume", out, "--quiet").out.count("seed-") == begun.out.count("seed-") == 4
    assert guieval("score", out).out.count("run:") == 4
