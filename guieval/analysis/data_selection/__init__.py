"""Which steps and episodes to train on.

Everything reads what :mod:`guieval.running.runner` wrote or what a benchmark lists, and writes sample sets
(:mod:`guieval.data.sample_sets`) or lists of steps, for evaluation and training. No model runs and nothing is trained here.

Sources: UI-R1 paper (three-stage selection), GUIEvalKit paper (HyperTrack's nested subsets).
"""

from guieval.analysis.data_selection.candidates import Candidate, Candidates, read_candidates
from guieval.analysis.data_selection.curated_files import (
    HYPERTRACK_SIZES,
    WrittenSet,
    nested_episodes,
    write_curated,
    write_nested,
)
from guieval.analysis.data_selection.quotas import Quota, read_quota
from guieval.analysis.data_selection.stages import (
    PRESETS,
    STAGES,
    Chosen,
    Curated,
    Recipe,
    Source,
    curate,
    get_preset,
    read_source,
)

__all__ = [
    "HYPERTRACK_SIZES",
    "PRESETS",
    "STAGES",
    "Candidate",
    "Candidates",
    "Chosen",
    "Curated",
    "Quota",
    "Recipe",
    "Source",
    "WrittenSet",
    "curate",
    "get_preset",
    "nested_episodes",
    "read_candidates",
    "read_quota",
    "read_source",
    "write_curated",
    "write_nested",
]
