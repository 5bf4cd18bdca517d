"""Episodes of our own format: anyone's data as one JSONL file next to its screenshots, without writing a loader.

The data are your own, what ``guieval data export`` wrote, or a folder of ``guieval data prepare``; ``docs/episodes.md``
describes the file.

Layout: ``episodes.jsonl`` or ``episodes.jsonl.gz`` in the folder (another name is given as the option ``file``), one episode a
line; screenshots anywhere below the folder, named by relative paths.

Label semantics: actions are in unified words already (``CLICK``, ``LONG_PRESS``, ``SCROLL`` with the finger's direction,
``TYPE``, ``OPEN``, ``PRESS``, ``WAIT``, ``STOP``, ``UNSUPPORTED``). A line's ``frame`` says whether its points and boxes are
unified, in pixels of the screenshot or fractions of it. Assumed: nothing; what a line does not say has the default that
``docs/episodes.md`` gives.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from guieval.actions import BUTTONS, ActionSpace
from guieval.data.episodes.read import EpisodesFolder

from ._examples import written_by


class Episodes(EpisodesFolder):
    """Any folder with ``episodes.jsonl``. The data set by which protocols choose their rules is the lines' own.

    ``file`` names another file in the folder, e.g. one of several splits.
    """

    name = "episodes"
    title = "Episodes (our own JSONL format)"
    source = "anyone's data: episodes.jsonl, one episode a line, next to its screenshots (described in docs/episodes.md)"
    paper = ""
    licence = "that of the data"
    protocol = "guievalkit"
    action_space = ActionSpace(buttons=frozenset(BUTTONS))
    write_example = written_by("episodes.write_episodes")

    def __init__(self, root: Path, *, file: str | None = None, **options: Any) -> None:
        super().__init__(root, file=file, **options)
        # the data set is the data's, not this format's: sample sets and reports ask for it
        vars(self).update(self.declared())
