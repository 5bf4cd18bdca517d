"""How the help of the commands with many options is laid out: their options in named panels, in this order."""

from __future__ import annotations

from typer.core import TyperCommand, TyperGroup, TyperOption

from guieval.cli.settings import RUN, run_panels

OWN = {
    "Data": "preset drawn_as",
    "History": "artifacts levels pair means shape kappa over mix_seed pick decisions near within above",
    "Sampling": "rounds seeds",
    "Run": "config override out resume dry_run trust_run accept_changes pool plot width drop_answers json quiet",
}
"""Options that are not settings of a run, by panel."""

COMMANDS = ("run", "study rollout", "study mix")


def panels() -> dict[str, list[str]]:
    """The options of each panel, by the names of the functions' parameters."""
    options = {panel: [RUN.option(name) for name in names] for panel, names in run_panels().items()}
    return {panel: [*options.get(panel, ()), *OWN.get(panel, "").split()] for panel in {**options, **OWN}}


def arrange(command: TyperCommand | TyperGroup) -> None:
    """Put the options of a command of :data:`COMMANDS` into their panels.

    Paragraphs of a help text are joined to one line each, since Typer keeps the line ends of all but the first.
    """
    for shown in (command, *(command.commands.values() if isinstance(command, TyperGroup) else ())):
        shown.help = "\n\n".join(" ".join(part.split()) for part in (shown.help or "").split("\n\n"))
    if command.name not in COMMANDS:
        return
    panel_of = {name: panel for panel, names in panels().items() for name in names}
    order = list(panel_of)
    for option in command.params:
        if isinstance(option, TyperOption):
            option.rich_help_panel = panel_of.get(option.name or "")
    command.params.sort(key=lambda option: order.index(option.name) if option.name in order else len(order))
