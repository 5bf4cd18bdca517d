"""The settings of a run: one class for each group (:mod:`.groups`), the types of fields and their marks (:mod:`.fields`), and
the parameters of requests (:mod:`.sampling`). It imports pydantic and no other package, so that a command's help is quick."""

from guieval.settings.fields import FLAG, OUTWARD, PUBLIC, RUNTIME, Mark, marks_of
from guieval.settings.groups import (
    GROUPS,
    PLACES,
    SETTINGS,
    Cluster,
    Data,
    Group,
    History,
    Model,
    Online,
    RunConfig,
    Sampling,
    Server,
    Tracking,
    own_names,
    own_path,
    place,
    placed,
)

__all__ = [
    "FLAG",
    "GROUPS",
    "OUTWARD",
    "PLACES",
    "PUBLIC",
    "RUNTIME",
    "SETTINGS",
    "Cluster",
    "Data",
    "Group",
    "History",
    "Mark",
    "Model",
    "Online",
    "RunConfig",
    "Sampling",
    "Server",
    "Tracking",
    "marks_of",
    "own_names",
    "own_path",
    "place",
    "placed",
]
