"""``guieval step``: why one step of a run is right or wrong: prompt, response, action, and what each rule says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from guieval.cli import options
from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import JSON, echo, print_json, say
from guieval.errors import UsageError
from guieval.journal.run_folders import open_folder
from guieval.models.composition import in_words
from guieval.reports.opened import OpenedOnlineRun, OpenedRun, open_run
from guieval.reports.opened.run import as_text
from guieval.reports.tables.records import writable
from guieval.reports.viewer.reading import protocols_to_show

if TYPE_CHECKING:
    from PIL.Image import Image

PICTURES = (".png", ".jpg", ".jpeg")


class Read(NamedTuple):
    """What is shown of a step, and how it is drawn."""

    values: Mapping[str, Any]
    picture: Callable[[], Image]


def step(
    run: Annotated[Path, path_argument("RUN", "A run directory, or a rollout.")],
    episode: Annotated[str, typer.Argument(metavar="EPISODE", help="Id of the episode, or of the task.")],
    step: Annotated[int, typer.Argument(metavar="STEP", help="Number of the step in it, from 0.")],
    protocol: options.Protocols = None,
    subset: Annotated[str | None, typer.Option(help="Subset, if an id is in several.")] = None,
    sample: Annotated[int, typer.Option(min=0, help="Sample of the step, or repetition of the task.")] = 0,
    data: options.RunData = None,
    adapter: options.ReadingAdapter = None,
    out: Annotated[Path | None, path_option("Picture to write (.png or .jpg): the screenshot with the viewer's marks.")] = None,
    json: JSON = False,
) -> None:
    """Show one step of a run: prompt, response, action, and each rule's reason under a protocol; draw it with --out."""
    if out is not None:
        if out.suffix.lower() not in PICTURES:
            raise UsageError(f"--out {str(out)!r} must end in {', '.join(PICTURES)}")
        writable(out)
    values, picture = read_step(run, episode, step, protocol or [], subset=subset, sample=sample, data=data, adapter=adapter)
    if json:
        print_json({"directory": run, **values})
    else:
        _print({"run": str(run), **values})
    if out is None:
        say(f"picture:  --out {episode if episode.isalnum() else 'step'}.png draws it", err=json)
    else:
        picture().save(out)
        echo(f"picture:  {out}", err=json)


def read_step(
    run: Path,
    episode: str,
    index: int,
    protocols: Sequence[str] = (),
    *,
    subset: str | None = None,
    sample: int = 0,
    data: Path | None = None,
    adapter: str | None = None,
) -> Read:
    """A step of a run, or of an online run's task, as ``guieval step`` shows it; :class:`UsageError` if there is none."""
    opened = open_run(run, data=data)
    return _READ[type(opened)](opened, episode, index, subset, sample, protocols, adapter)


def _of_steps(
    run: OpenedRun, episode: str, index: int, subset: str | None, sample: int, names: Sequence[str], adapter: str | None
) -> Read:
    protocols = protocols_to_show(open_folder(run.directory), names)
    first, *others = (run.step(episode, index, subset=subset, protocol=name) for name in protocols)
    texts, prompt = first.texts(sample), first.prompt(adapter)
    judged = [
        {
            "protocol": each.protocol,
            "verdict": each.outcomes[sample].verdict,
            "reason": each.outcomes[sample].reason,
            "accepted": [
                {"action": as_text(one.accepted), "rule": one.rule, **one.judgement._asdict()} for one in each.judged(sample)
            ],
        }
        for each in (first, *others)
    ]
    names_of = {"response": "raw response", "action": "prediction"}
    shown = ("instruction", "step instruction", "reference", "response", "reasoning", "thought", "action", "failure")
    values = {
        "episode": first.key.episode_id,
        "subset": first.key.subset,
        "step": index,
        "sample": sample,
        "prompt": prompt.text,
        "prompt_note": prompt.note,
        **{name.replace(" ", "_"): texts.get(names_of.get(name, name)) for name in shown},
        "targets": [[round(side, 3) for side in box] for box in first.task.targets],
        "protocols": judged,
    }
    return Read(values, lambda: first.image(sample))


def _of_tasks(
    run: OpenedOnlineRun, task: str, index: int, subset: str | None, sample: int, names: Sequence[str], adapter: str | None
) -> Read:
    if names:
        raise UsageError("an online run is judged by its environment as a whole: leave out --protocol")
    found = run.step(task, index, sample, subset=subset)
    record, ended = found.record, run.trajectory(task, sample, subset=subset).trajectory.ended
    values = {
        "episode": record.key.episode_id,
        "subset": record.key.subset,
        "step": index,
        "sample": sample,
        "instruction": record.goal,
        "response": record.raw_response,
        "reasoning": record.reasoning,
        "thought": record.thought,
        "action": None if record.action is None else as_text(record.action),
        "executed": record.executed,
        "failure": None if record.error is None else f"{record.error.stage}: {record.error.message}",
        "ended": ended,
        "protocols": [],
    }
    return Read(values, found.image)


_READ: Mapping[type, Callable[..., Read]] = {OpenedRun: _of_steps, OpenedOnlineRun: _of_tasks}


def _print(values: Mapping[str, Any]) -> None:
    where = f"{values['subset']}/{values['episode']}" if values["subset"] else values["episode"]
    say(f"run:      {values['run']}")
    say(f"step:     {values['step']} of {where}, sample {values['sample']}")
    for name in ("instruction", "step_instruction"):
        if values.get(name):
            say(f"{name.replace('_', ' ')}: {values[name]}")
    for title in ("Prompt", "Reasoning", "Response"):
        if text := values.get(title.lower()):
            echo(f"\n{title}")
            for line in in_words(text).splitlines():
                say(f"  {line}", indent=4)
    echo()
    if values.get("prompt_note"):
        say(f"note: {values['prompt_note']}")
    if values["failure"]:
        say(f"failed:    {values['failure']}")
    say(f"action:    {values['action'] or 'none was read from the response'}")
    if values.get("reference"):
        say(f"reference: {values['reference']}")
    if "ended" in values:
        say(f"executed:  {'yes' if values['executed'] else 'no'}; the repetition ended: {values['ended']}")
    for each in values["protocols"]:
        say(f"{each['protocol']}: {each['verdict']}: {each['reason']}")
        for one in each["accepted"]:
            if len(each["accepted"]) > 1:
                match = "exact match" if one["exact_match"] else "type match only" if one["type_match"] else "no match"
                say(f"  accepted {one['action']}: {match}: {one['reason']}", indent=6)
            say(f"  rule for it: {one['rule']}" if len(each["accepted"]) > 1 else f"  rule: {one['rule']}", indent=6)
    if any("point=" in (values.get(name) or "") for name in ("action", "reference")):
        say("Points are in thousandths of the screen, x before y.")
