"""The targets by their names, and where recorded material is."""

from __future__ import annotations

import os
from pathlib import Path

from .annotations import Annotations
from .downloads import Downloads
from .engine import Target
from .environment_servers import EnvironmentServers
from .native_answers import NativeAnswers
from .prediction_files import PredictionFiles
from .replies import Replies
from .run_folders import RunFolders
from .server_answers import ServerAnswers
from .setting_files import SettingFiles
from .trajectories import Trajectories

TARGETS: dict[str, type[Target]] = {
    each.name: each
    for each in (
        *(Replies, Annotations, PredictionFiles, RunFolders, ServerAnswers),
        *(NativeAnswers, Trajectories, EnvironmentServers, Downloads, SettingFiles),
    )
}


def recorded() -> Path | None:
    """The folder of real annotations, replies and result files, where this machine has one."""
    repository = Path(__file__).resolve().parent.parent.parent
    folder = Path(os.environ.get("GUIEVAL_SHARED_DATA", repository.parent / "shared" / "data"))
    return folder if folder.is_dir() else None
