"""``guieval study judge``: a judge looks at the trajectories of an online run and says which tasks are done."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

import typer

from guieval.cli.settings import RUN, Given, path_argument
from guieval.cli.tables import JSON, print_json, say, show
from guieval.errors import UsageError
from guieval.journal import RunFolder
from guieval.journal.run_folders import one_run
from guieval.reports.tables.table import Column, Number, Table
from guieval.running.costs import bill, describe, find_price, read_prices
from guieval.settings import Server
from guieval.studies.judges.agreement import LabelsAndVerdicts, agreement, self_consistency
from guieval.studies.judges.asking import Found, apply, ask, read_judgements, spent
from guieval.studies.judges.cases import Case, of_run
from guieval.studies.judges.judge import FOLDER, AnyJudge, Judge, Rule, load_judge

TITLES = {
    "judged_success": "success rate, as judged",
    "success": "success rate, same tasks",
    "accuracy": "accuracy",
    "balanced": "balanced accuracy",
    "kappa": "Cohen's kappa",
    "f1_success": "F1 of success",
    "f1_failure": "F1 of failure",
    "sensitivity": "successes called success",
    "specificity": "failures called failure",
    "precision": "called success and right",
    "leniency": "as judged minus labels",
}
SERVER = ("base_urls", "served_model", "api_key_env", "concurrency", "timeout", "max_attempts", "patience")
TEMPERATURE: TypeAlias = Annotated[float | None, typer.Option(min=0.0, help="Of the model (default: the judge's own).")]
MAX_TOKENS: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="Tokens of a response at most (default: the judge's own).")
]
REPEATS: TypeAlias = Annotated[
    int, typer.Option(min=1, help="JudgeVerdicts on each trajectory, to see whether the judge agrees with itself.")
]


class Asks(NamedTuple):
    """Who judges, and how it is sampled."""

    judge: AnyJudge
    sampling: dict[str, float | int]
    server: Server | None
    repeats: int


class JudgeVerdicts(NamedTuple):
    """A judge's verdicts, and the file that has them, with the model's name; a rule has neither."""

    judge: AnyJudge
    model: str
    found: Found
    file: Path

    @property
    def name(self) -> str:
        """The judge, and the model if there is one."""
        name = self.judge.name
        return f"{name}, {self.model}" if self.model else name


@RUN.options(*SERVER)
def judge(
    settings: Given,
    run: Annotated[Path, path_argument("RUN", "The online run whose tasks are judged.")],
    judge: Annotated[
        str, typer.Option(help="A judge or a rule by its name, e.g. ui-s1 or rule-claim, or a .yaml file.")
    ] = "ui-s1",
    repeats: REPEATS = 1,
    temperature: TEMPERATURE = None,
    max_tokens: MAX_TOKENS = None,
    json: JSON = False,
) -> None:
    """Have a model or a rule judge the tasks of an online run by their trajectories, and compare it with the environment."""
    place = one_run(run)
    cases = of_run(place, RunFolder(place).tasks)
    who = asked(judge, settings, temperature, max_tokens, repeats)
    verdicts = verdicts_of(who, place / FOLDER, cases)
    found = agreement(LabelsAndVerdicts.of(cases, verdicts.found))._asdict()
    compared = any(case.own is not None for case in cases)
    shown = found if compared else {"judged_success": found["judged_success"]}
    counts = Counter(each.verdict for each in verdicts.found.values())
    consistent = self_consistency(cases, verdicts.found)
    cost = cost_of(verdicts)
    if json:
        about = {"judge": verdicts.judge.name, "version": verdicts.judge.version, "model": verdicts.model}
        about["digest"] = who.judge.digest(who.sampling)
        also = {"self_consistency": consistent, "cost": cost, "file": verdicts.file}
        print_json({**about, "verdicts": counts, **shown, **also})
        return
    rows = [*((TITLES[name], Number(value, show_n=True)) for name, value in shown.items())]
    if consistent is not None:
        rows.append(("agreement with itself", Number(consistent, show_n=True)))
    notes = ("The environment's own verdicts stay as they are; kappa is not defined if both say one thing everywhere.",)
    against = ", against the environment" if compared else ""
    title = f"{verdicts.judge.title}, version {verdicts.judge.version}{against} (with 95 % intervals)"
    show(Table(title, (Column(""), Column(verdicts.name)), tuple(rows), notes=notes if compared else ()))
    say("verdicts: " + ", ".join(f"{count:,} {verdict}" for verdict, count in counts.most_common()))
    if cost is not None and (sentence := describe(cost)):
        say(f"cost:     {sentence}")
    say(f"file:     {verdicts.file}")


def asked(name: str, settings: Given, temperature: float | None, max_tokens: int | None, repeats: int) -> Asks:
    """Who judges, from the options; :class:`UsageError` for a model's judge without a server."""
    judge = load_judge(name)
    if isinstance(judge, Rule):
        return Asks(judge, {}, None, 1)
    if not settings.get("base_urls"):
        raise UsageError(f"judge {name!r} is answered by a server: add --base-url URL, e.g. http://127.0.0.1:8000/v1")
    given = {"temperature": temperature, "max_tokens": max_tokens}
    sampling = judge.sampling | {option: value for option, value in given.items() if value is not None}
    return Asks(judge, sampling, Server(**{"concurrency": 64, **settings}), repeats)


def verdicts_of(asked: Asks, folder: Path, cases: Sequence[Case]) -> JudgeVerdicts:
    """The verdicts of an earlier call, and those that are missing, which are added to their file as they come."""
    judge = asked.judge
    if isinstance(judge, Rule):
        file = folder / f"{judge.file}.jsonl"
        found = apply(judge, cases)
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(each.model_dump_json() + "\n" for each in found.values()), encoding="utf-8")
        return JudgeVerdicts(judge, "", found, file)
    assert asked.server is not None  # of a judge that is no rule
    return asyncio.run(_requested(judge, asked.sampling, asked.server, asked.repeats, folder, cases))


async def _requested(
    judge: Judge, sampling: dict[str, float | int], server: Server, repeats: int, folder: Path, cases: Sequence[Case]
) -> JudgeVerdicts:
    from guieval.engines.http.chat_completions import OpenAIEngine

    engine = OpenAIEngine(server)
    try:
        model = await engine.discover()
        file = folder / f"{judge.file}--{model.replace('/', '_')}.jsonl"
        found = read_judgements(file, judge, judge.digest(sampling), model)
        places = [(case, repeat) for case in cases for repeat in range(repeats) if (case.id, repeat) not in found]
        folder.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as stream:
            limit = server.concurrency if isinstance(server.concurrency, int) else 64
            async for each in ask(judge, engine, model, places, sampling=sampling, concurrency=limit):
                stream.write(each.model_dump_json() + "\n")
                stream.flush()
                found[each.case, each.repeat] = each
    finally:
        await engine.close()
    return JudgeVerdicts(judge, model, found, file)


def cost_of(verdicts: JudgeVerdicts) -> dict[str, object] | None:
    """Tokens and cost of the responses; ``None`` for a rule."""
    if not verdicts.model:
        return None
    return bill(spent(verdicts.found.values()), find_price(read_prices(), [verdicts.model]))
