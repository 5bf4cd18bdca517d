"""``guieval study judge``: a model looks at the trajectories of an online run and says which tasks are done."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli.settings import RUN, Given, path_argument
from guieval.cli.tables import JSON, print_json, say, show
from guieval.errors import UsageError
from guieval.journal import RunFolder
from guieval.journal.run_folders import one_run
from guieval.reports.tables.table import Column, Number, Table
from guieval.settings import Server
from guieval.steps import EpisodeKey
from guieval.studies.judges import FOLDER, Agreement, Case, Judge, JudgedTask, agreement, ask, cases, load_judge, read_verdicts

TITLES = {
    "judged_success": "success rate, as judged",
    "success": "success rate, same tasks",
    "agreement": "agreement",
    "kappa": "Cohen's kappa",
    "sensitivity": "successes called success",
    "specificity": "failures called failure",
}


@RUN.options("base_urls", "served_model", "api_key_env", "concurrency", "timeout", "max_attempts", "patience")
def judge(
    settings: Given,
    run: Annotated[Path, path_argument("RUN", "The online run whose tasks are judged.")],
    judge: Annotated[str, typer.Option(help="What the model is asked: a name, e.g. ui-s1, or a .yaml file.")] = "ui-s1",
    temperature: Annotated[float, typer.Option(min=0.0, help="0 is greedy decoding.")] = 0.0,
    max_tokens: Annotated[int, typer.Option(min=1, help="Tokens of a response at most.")] = 1024,
    json: JSON = False,
) -> None:
    """Have a model judge the tasks of an online run by their last screenshots, and compare it with the environment."""
    chosen, place = load_judge(judge), one_run(run)
    judged = cases(place, RunFolder(place).tasks)
    if not settings.get("base_urls"):
        raise UsageError("a judge is answered by a server: add --base-url URL, e.g. http://127.0.0.1:8000/v1")
    server = Server(**{"concurrency": 64, **settings})
    sampling = {"temperature": temperature, "max_tokens": max_tokens}
    model, verdicts, file = asyncio.run(_judge(chosen, Path(judge).stem, server, place, judged, sampling))
    counts = Counter(each.verdict for each in verdicts.values())
    found = agreement(judged, verdicts)
    if json:
        print_json(
            {"judge": judge, "model": model, "digest": chosen.digest, "verdicts": counts, **found._asdict(), "file": file}
        )
        return
    show(_table(chosen, model, found))
    say("verdicts: " + ", ".join(f"{count:,} {verdict}" for verdict, count in counts.most_common()))
    say(f"file:     {file}")


async def _judge(
    judge: Judge, name: str, server: Server, run: Path, judged: list[Case], sampling: dict[str, float | int]
) -> tuple[str, dict[tuple[EpisodeKey, int], JudgedTask], Path]:
    """The model's name, its verdicts with those of an earlier call, and their file, in which each is kept as it comes."""
    from guieval.engines.http.chat_completions import OpenAIEngine

    engine = OpenAIEngine(server)
    try:
        model = await engine.discover()
        file = run / FOLDER / f"{name}--{model.replace('/', '_')}.jsonl"
        found = read_verdicts(file, judge, model)
        asked = [case for case in judged if (case.task.episode_key, case.repetition) not in found]
        file.parent.mkdir(exist_ok=True)
        with file.open("a", encoding="utf-8") as stream:
            limit = server.concurrency if isinstance(server.concurrency, int) else 64
            async for each in ask(judge, engine, model, run, asked, sampling=sampling, concurrency=limit):
                stream.write(each.model_dump_json() + "\n")
                stream.flush()
                found[each.key, each.repetition] = each
    finally:
        await engine.close()
    return model, found, file


def _table(judge: Judge, model: str, found: Agreement) -> Table:
    rows = [(TITLES[name], Number(value, show_n=True)) for name, value in found._asdict().items()]
    notes = ("The environment's own verdicts stay as they are; kappa is not defined if both say one thing everywhere.",)
    return Table(f"{judge.title} (with 95 % intervals)", (Column(""), Column(model)), tuple(rows), notes=notes)
