"""Every command of docs/reproduce.md is started, against scripted servers and on made-up data in each release's format.

What a command needs that a test has not it says in one sentence, which :data:`REFUSED` expects of it.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from guieval.journal import RunFolder
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.playground.mock_server.app import Answers
from guieval.playground.mock_server.policies import policy_answers
from guieval.registry import benchmarks, load_benchmark
from guieval.running.campaign import planned, read_campaign
from perf.reproduce import page
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY
from tests.connectors.servers.android_servers import AndroidWorldServer
from tests.docs.world import value_of, without
from tests.online.in_thread import InThread
from tests.perf.test_reproduce import commands

REFUSED = {  # commands (patterns) that need what a test has not: the sentence with which each ends, and why
    r"train (?!probe-reward)": ("needs the package 'no_such_package'", "a training, or a plan of its memory, needs its extra"),
    r"run .*--cluster ray": ("no Ray cluster is found", "needs machines of a cluster"),
    r"run .*--config ui-s1-sop": ("needs 1,543 named episodes", "needs the test split of the release"),
    r"data download": ("is not downloaded by guieval", "behind a form at its source, or not public whole"),
    r"data prepare androidcontrol": ("has no option 'trees'", "needs shards of the release, not its prepared form"),
    r"study select --nested": ("has no split 'train'", "the split is not public"),
    r"study select .*(--top|--preset)": ("too few steps to choose from", "needs thousands of steps"),
    r"plot horizon .*--by ratio-step": ("no cell holds 10 steps", "needs hundreds of steps"),
}
JUDGE, QWEN = "runs/judge-owl32", "runs/judge-qwen"
OWL, ANDROIDWORLD = "rollouts/gui-owl-7b", {"RUN": "runs/ui-s1-7b-androidworld", "BASELINE": "runs/ui-tars-7b-androidworld"}
NAMES = (
    (r"plot (strip|bars)|study judge|data record|score .*--by (tags|difficulty)", ANDROIDWORLD),
    (r"score .*--by (device|category)|study select .*--balance", {"RUN": "runs/gui-owl-7b-hypertrack-offline-soeval/offline"}),
    (r"study (mix|decisions RUN --steps)", {"RUN": "rollouts/ui-tars-1.5-7b-offline/androidcontrol"}),
    (r"study decisions --pool", {"STUDY": f"{OWL}-soeval", "BASELINE": f"{OWL}-offline"}),
    (r"study decisions|report|plot (clusters|reachability)", {"RUN": f"{OWL}-soeval/aitz", "BASELINE": f"{OWL}-offline/aitz"}),
    (r"", {"RUN": "runs/owl", "BASELINE": QWEN, "A": JUDGE, "A,B": f"{JUDGE},{QWEN}", "NAME": "androidcontrol"}),
    (r"", {"OFFLINE": "runs/owl", "SOP": "runs/ui-s1-7b-androidcontrol-sop", "ONLINE": ANDROIDWORLD["RUN"]}),
    (r"", {"DIR": "data/androidcontrol", "EPISODE": "0", "TRAINING": "training-grpo-0"}),
)
"""What RUN and other names mean in the commands of a pattern; the first pattern decides."""
READ = [each for _, names in NAMES for value in names.values() for each in value.split(",")]
SMALL = {
    "run": ["--samples", "2"],
    "study rollout": ["--samples", "2", "--rounds", "1"],
    "study mix": ["--levels", "2", "--means", "1"],
}


class World:
    """The servers of a folder, and what a command becomes in it."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._seen: set[str] = set()
        self._servers: dict[str, str] = {}
        emulator = AndroidWorldServer("android_world", "miniwob")
        self._android = stack.enter_context(InThread(emulator.app())).address

    def words(self, words: list[str]) -> list[str]:
        line = shlex.join(words)
        names = {name: value for pattern, of in reversed(NAMES) if re.match(pattern, line) for name, value in of.items()}
        words = [names.get(word, word).replace("DATA/", "data/").replace("url=URL", f"url={self._android}") for word in words]
        words = [each for word in words for each in (map(str, Path().glob(word)) if "*" in word else [word])]
        if "--base-url" in words:
            return [*without(words, ["--base-url"]), "--base-url", self._server("gui-owl-7b")]
        if words[0] == "campaign":
            return [*without(words, ["--dry-run"]), "--dry-run"]
        name = next((name for name in SMALL if line.startswith(f"{name} ")), "")
        if not name or "--pool" in words:
            return words
        if "--resume" in words:
            return [*words, "--quiet"]
        small = [] if {"--drawn-as", "--preset"} & {*words} else ["--limit", "1"]
        small += SMALL[name] if name != "run" or "--samples" in words else []
        return [*without(words, ["--engine", *small[::2]]), *small, "--quiet", *self._added(name, words, line)]

    def _added(self, name: str, words: list[str], line: str) -> list[str]:
        model, out = value_of(words, "--model") or "", value_of(words, "--out")
        added = ["--base-url", self._server(model), *(["--set", "max_steps=2"] if "online" in words else [])]
        if out is None:
            self._seen.add(out := f"runs/{len(self._seen)}")
            added += ["--out", out]
        # of the runs that no command reads, the first of other options than the model's is made; the others are planned
        rest = re.sub(r"--(model |out |set model_path=)\S+|--(no-)?thinking", "", line)
        planned_only = name == "run" and not any(each.startswith(out) for each in READ) and rest in self._seen
        self._seen.add(rest)
        return [*added, *(["--dry-run"] if planned_only else [])]

    def _server(self, model: str) -> str:
        if model not in self._servers:
            server = MockServer(MockSettings(served_models=(model,)), answers=answers(model))
            self._servers[model] = self._stack.enter_context(server).base_url
        return self._servers[model]


def answers(model: str) -> Answers:
    """Right on half of the steps of recorded data, at random in live tasks."""

    @cache
    def of(bench: str) -> Answers:
        if not (data := Path("data", bench)).is_dir():
            return policy_answers(MockSettings(policy="random", model=model))
        return policy_answers(
            MockSettings(policy="reference", model=model, accuracy=0.5), benchmark=load_benchmark(bench, data)
        )

    return lambda tag, body: of(tag.key.benchmark if tag.key else "no data")(tag, body)


def write_study(folder: Path, metric: str | None) -> None:
    """What a campaign writes of its trainings, with made-up values of a metric of one of its runs, and one training."""
    runs = planned(read_campaign(Path(folder.name)), folder)
    metric = metric if metric and ": " in metric else f"{runs[0].rest}: exact match"
    assert metric.partition(": ")[0] in {run.rest for run in runs}, metric
    trainings = {run.training.name: dict(run.training.varied) for run in runs if run.training is not None}
    lines = [
        {"training": name, "settings": varied, "metrics": {metric: 40 + place**0.5}, "gpu_hours": place + 1.0}
        for place, (name, varied) in enumerate(trainings.items())
    ]
    shutil.copytree(REPOSITORY / "tests/pinned/runs/training-grpo-0", folder / "trainings" / "made")
    (folder / "trainings.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def problem(words: list[str], world: World, guieval: CommandLine, used: set[str]) -> str | None:
    """How a command ended otherwise than it should."""
    line = shlex.join(words)
    study = next((Path(word) for word in words if re.fullmatch(r"runs/\S+-(table|figure)-\d+", word)), None)
    if study is not None and words[0] != "campaign" and not study.exists():
        write_study(study, value_of(words, "--y"))
    if "labels.csv" in words and not Path("labels.csv").exists():
        rows = [f"{key.episode_id},{index},1\n" for key, steps in RunFolder(Path("runs/owl")).plan.items() for index in steps]
        Path("labels.csv").write_text("".join(["episode_id,step_index,consistent\n", *rows]))
    with pytest.MonkeyPatch.context() as patch:
        if words[0] == "campaign":  # the made-up data are no release's, which a campaign's dry run notices
            Path("empty").mkdir(exist_ok=True)
            patch.chdir("empty")
        done = guieval(*world.words(words))
    pattern = next((each for each in REFUSED if re.match(each, line)), None)
    if pattern is None:
        return None if done.code == 0 else f"{line}\n    exit code {done.code}: {done.err.strip()[-300:]}"
    used.add(pattern)
    sentence, reason = REFUSED[pattern]
    return None if done.code and sentence in done.out + done.err else f"{line}\n    not refused: {reason}"


def test_every_command_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guieval: CommandLine) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("guieval.training.guard.PACKAGES", ("no_such_package",))  # else trainings would begin
    for name, kind in benchmarks().items():
        if kind.needs_data and hasattr(kind, "write_example"):
            (home := tmp_path / "data" / name).mkdir(parents=True)
            kind.write_example(home, episodes=1)
    shutil.copytree(REPOSITORY / "tests/pinned/runs/training-grpo-0", tmp_path / "training-grpo-0")
    (tmp_path / "scores.csv").write_text("episodes,exact\n16,31.0\n64,40.5\n256,48.0\n")
    lines = [line.partition("-m ")[2] if line.startswith("accelerate") else line for line in commands(page())]
    makes = re.compile(r"guieval (run|study rollout) .* --out (runs|rollouts|STUDY)")
    used: set[str] = set()
    with ExitStack() as stack:
        world = World(stack)
        ordered = sorted(dict.fromkeys(lines), key=lambda line: not makes.match(line))
        wrong = [found for line in ordered if (found := problem(shlex.split(line)[1:], world, guieval, used))]
    assert not wrong, "\n".join(wrong)
    assert used == {*REFUSED}
