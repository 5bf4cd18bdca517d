"""The board of everything public that is scored here: the files of docs/reproduced.md under every protocol, and all tables.

    python -m perf.board FOLDER        # from the repository's root: two minutes; needs the files (GUIEVAL_SHARED_DATA)

writes the runs to FOLDER/runs and the pages to FOLDER/site. The commands on the pages are for a folder that has the files next
to `runs`; docs/reproduced.md says where they are published.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import guieval
from guieval.errors import DataError, UsageError
from guieval.exchange.importing import import_predictions
from guieval.reports.leaderboards.board import Board
from perf.reproduced import LISTS, SOURCES, UI_GENIE, Source, condition, data_folder, file_of

MODELS = {
    "local_SSV2.json": "MAI-UI-8B (local)",
    "server_SSV2.jsonl": "MAI-UI-8B (server)",
    "local_OS_G.json": "MAI-UI-8B (local)",
    "server_MMBench.jsonl": "MAI-UI-8B (server)",
    "qwen25vl.json": "Qwen2.5-VL",
    "qwen2vl.json": "Qwen2-VL",
    "rec_results_android_studio_macos_8k_SFT_0.json": "SE-GUI",
    "runs.jsonl": "mobilepilot",
    "details.json": "UI-Genie-7B",
}
"""What the pages call the model of a file, by the file's name."""


def write_board(folder: Path, data: Path) -> Board:
    """Import the files of the folder ``data`` into ``folder``/runs, and write the pages of these runs and all tables."""
    runs = (folder / "runs").resolve()
    if runs.exists():
        raise UsageError(f"{str(runs)!r} exists; choose another folder")
    made = list(_imported(runs, data))
    with chdir(folder):
        return guieval.leaderboard([Path("runs") / name for name in made], site="site", reference="all")


def _imported(runs: Path, data: Path) -> Iterator[str]:
    for source in dict.fromkeys(each._replace(protocol=None) for each in (*SOURCES, UI_GENIE)):
        file = file_of(source, data).relative_to(data)
        model, name = MODELS[source.name], source.name.partition(".")[0]
        note = source.url
        if source.only is not None:
            field, value = source.only
            name, model = f"{name}-{value}", f"{model} {value}"
            file = condition(data / file, source.only, runs.parent / f"{name}.jsonl")
            note += f", the rows whose {field} is {value}"
        bench, labels = (None, None) if source == UI_GENIE else (source.benchmark, LISTS)
        with chdir(data):
            partial = _partial(source)
            import_predictions(file, runs / name, bench=bench, data=labels, name=model, note=note, answered_only=partial)
        yield name


def _partial(source: Source) -> bool:
    """Whether the file is of some of the benchmark's steps on purpose, which are then all that count."""
    return source.only is not None or source.repository == "YXB-NKU/SE-GUI"


if __name__ == "__main__":
    try:
        out = Path(sys.argv[1])
        out.mkdir(parents=True, exist_ok=True)
        write_board(out, data_folder())
    except IndexError:
        sys.exit("board: expected a folder: python -m perf.board FOLDER")
    except (DataError, UsageError) as error:
        sys.exit(f"board: {error}")
    print(f"wrote {out / 'site' / 'index.html'}")
