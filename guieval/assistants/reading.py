"""The tools that only read: lists, scores, comparisons and steps, with the values that the commands print with ``--json``.

The docstrings are the descriptions of the tools that a model reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias

from pydantic import Field

from guieval.assistants.run_folder import AllowedRuns
from guieval.cli.results.score import score_values
from guieval.cli.results.step import read_step
from guieval.cli.running.runs import run_values
from guieval.errors import GuievalError, UsageError, known_name
from guieval.evaluation import get_protocol, list_protocols
from guieval.models.families import TASKS
from guieval.registry import benchmark_class, find_models, list_benchmarks
from guieval.reports.api import compare
from guieval.reports.comparison_formats import compare_json
from guieval.reports.opened import OpenedOnlineRun, OpenedRun, open_run
from guieval.reports.past_runs import past_runs
from guieval.scoring.matrix import ALL

if TYPE_CHECKING:
    from PIL.Image import Image

Json: TypeAlias = dict[str, Any]
Wanted: TypeAlias = Literal["not_right", "right", "wrong", "unparseable", "unsupported", "infrastructure_failure", "any"]
RunName: TypeAlias = Annotated[str, Field(description="Path of a run below the folder of runs, as list_runs names it.")]
Protocols: TypeAlias = Annotated[
    list[str] | None,
    Field(description="Protocols by name, from list_protocols; ['all'] is every one, a long result. Default: the run's own."),
]
PICTURE_SIDE = 1280
"""The longest side, in pixels, of a picture that is sent: what most models see of one."""


class SeenPicture(NamedTuple):
    """A step's values, and its picture, or ``None`` if it cannot be read."""

    values: Json
    picture: Image | None


class ReadingTools:
    """The tools, on the runs below one folder."""

    def __init__(self, runs: Path) -> None:
        self._runs = AllowedRuns(runs)

    def every(self) -> tuple[Callable[..., Json], ...]:
        """The tools that answer with values alone; :meth:`show_step` has a picture too."""
        listed = (self.list_benchmarks, self.list_models, self.list_protocols, self.list_runs)
        return (*listed, self.score, self.compare, self.list_steps)

    def list_benchmarks(self) -> Json:
        """List the benchmarks: title, licence, default protocol, published sizes, and whether a folder of data is needed.

        'demo' needs no data. `guieval benchmarks NAME` says where to get the others.
        """
        return {"benchmarks": [_benchmark(name) for name in list_benchmarks()]}

    def list_models(
        self,
        contains: Annotated[str, Field(description="Part of a checkpoint's name, family or Hugging Face id, e.g. 'ui-tars'.")],
        task: Annotated[str | None, Field(description=f"Only those for: {', '.join(TASKS)}.")] = None,
        size: Annotated[str | None, Field(description="Only those of this size, e.g. '7b'.")] = None,
    ) -> Json:
        """List checkpoints that can be evaluated by name. 'ocr-baseline' is a small agent that needs no GPU and no server."""
        found = find_models(contains, task=None if task is None else known_name("task", task, TASKS), size=size)
        return {"models": [asdict(each) for each in found]}

    def list_protocols(
        self, name: Annotated[str | None, Field(description="One protocol: its rules, metrics and source in words.")] = None
    ) -> Json:
        """List the scoring protocols with a summary and their source, or describe one in full."""
        if name is not None:
            return {"name": name, "description": get_protocol(name).describe()}
        listed = map(get_protocol, list_protocols())
        return {"protocols": [{"name": each.name, "summary": each.summary, "source": each.source} for each in listed]}

    def list_runs(self) -> Json:
        """List the runs, newest first: model, benchmark, mode, protocol, state, and exact match with n and interval."""
        folder = self._runs.folder
        return {"runs": [run_values(run) for run in past_runs(folder)] if folder.is_dir() else []}

    def score(
        self,
        run: RunName,
        protocol: Protocols = None,
        by: Annotated[
            list[str] | None, Field(description="Break down by: action-type, length, step, ratio, reasoning, subset, error.")
        ] = None,
    ) -> Json:
        """Score a run under protocols, without the model: every metric with its n, interval and missing steps.

        Quote a metric with its n and interval. 'missing' steps were not measured: resume the run before you compare it.
        """
        return score_values(self._runs.existing(run), _known(protocol), by or ())

    def compare(
        self,
        first: RunName,
        second: RunName,
        protocol: Protocols = None,
        anyway: Annotated[
            bool, Field(description="Compare unlike runs too (other data, mode or subset), on shared steps.")
        ] = False,
    ) -> Json:
        """Compare two runs on the same steps: each metric's difference (second minus first), interval and p-value.

        A difference whose interval includes 0 is not shown. 'unlike' and 'notes' say in what else the runs differ.
        """
        paths = self._runs.existing(first), self._runs.existing(second)
        return {
            "comparisons": [compare_json(each) for each in compare(*paths, protocol=_known(protocol) or None, anyway=anyway)]
        }

    def list_steps(
        self,
        run: RunName,
        verdict: Annotated[Wanted, Field(description="Only steps with this verdict of the first sample.")] = "wrong",
        protocol: Annotated[str | None, Field(description="The protocol that judges; default: the run's own.")] = None,
        limit: Annotated[int, Field(ge=1, le=500, description="At most so many steps.")] = 20,
    ) -> Json:
        """List steps of a run by verdict: episode, step, reference, prediction and reason. show_step then shows one.

        Online runs are judged as whole tasks and have no such list.
        """
        opened = open_run(self._runs.existing(run))
        if isinstance(opened, OpenedOnlineRun):
            raise UsageError(
                f"{run!r} is an online run: its tasks are {', '.join(opened.tasks[:20])}; show_step shows their steps"
            )
        found = list(_steps(opened, verdict, None if protocol is None else known_name("protocol", protocol, list_protocols())))
        return {"count": len(found), "steps": found[:limit]}

    def show_step(
        self,
        run: RunName,
        episode: Annotated[str, Field(description="Id of the episode, or of an online run's task, from list_steps.")],
        step: Annotated[int, Field(ge=0, description="Number of the step in the episode, from 0.")],
        protocol: Protocols = None,
        subset: Annotated[str | None, Field(description="Subset, if an episode's id is in several.")] = None,
        sample: Annotated[int, Field(ge=0, description="Sample of the step, or repetition of the task.")] = 0,
    ) -> SeenPicture:
        """Show one step: prompt, response, action, reference and target, each protocol's verdict and reason, and a picture.

        The picture is the screenshot with the reference, the target box and the predicted action drawn on it. Points are in
        thousandths of the screen, x before y.
        """
        path = self._runs.existing(run)
        values, draw = read_step(path, episode, step, _known(protocol), subset=subset, sample=sample)
        shown = {"directory": path, **values}
        try:
            picture = draw()
        except GuievalError as error:  # the texts are worth having without it
            return SeenPicture({**shown, "picture": f"none: {error}"}, None)
        picture.thumbnail((PICTURE_SIDE, PICTURE_SIDE))
        return SeenPicture(shown, picture)


def _known(names: list[str] | None) -> list[str]:
    return [name if name == ALL else known_name("protocol", name, list_protocols()) for name in names or ()]


def _benchmark(name: str) -> Json:
    kind = benchmark_class(name)
    facts = {
        "name": name,
        "title": kind.title,
        "licence": kind.licence,
        "protocol": kind.protocol,
        "needs_data": kind.needs_data,
    }
    return {
        **facts,
        "published": [{"name": each.name, "episodes": each.episodes, "steps": each.steps} for each in kind.published],
    }


def _steps(run: OpenedRun, verdict: Wanted, protocol: str | None) -> Iterator[Mapping[str, Any]]:
    for step in run.walk(protocol):
        if step.record is None or step.verdict == "not_reached":
            continue
        matches = {"any": True, "not_right": step.verdict != "right"}
        if matches.get(verdict, step.verdict == verdict):
            texts = step.texts()
            names = ("instruction", "reference", "prediction", "reason", "failure")
            yield {"episode": step.key.episode_id, "subset": step.key.subset, "step": step.index, "verdict": step.verdict} | {
                name: texts[name] for name in names if name in texts
            }
