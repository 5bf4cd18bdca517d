"""Which steps and episodes to train on, and how much more of them helps: data selection and scaling laws.

Everything reads what :mod:`guieval.running.runner` wrote or what a benchmark lists, and writes sample sets
(:mod:`guieval.data.sample_sets`) or lists of steps, for evaluation and training. No model is asked and nothing is trained here.

Sources: UI-R1 paper (three-stage selection), GUIEvalKit paper (HyperTrack's nested subsets), UI-S1 paper (exponential law).
"""

from guieval.analysis.data_selection.candidates import Candidate, Candidates, read_candidates
from guieval.analysis.data_selection.curated_files import WrittenSet, write_curated, write_nested
from guieval.analysis.data_selection.nested import HYPERTRACK_SIZES, nested_episodes
from guieval.analysis.data_selection.presets import PRESETS, get_preset
from guieval.analysis.data_selection.quotas import Quota, read_quota
from guieval.analysis.data_selection.stages import STAGES, Chosen, Curated, Recipe, Source, curate, read_source
from guieval.analysis.scaling.csv_file import ScalingSeries, read_scaling_table
from guieval.analysis.scaling.laws import FORMS, Coefficient, ScalingFit, fit_exponential, fit_log_linear, fit_scaling

__all__ = [
    "FORMS",
    "HYPERTRACK_SIZES",
    "PRESETS",
    "STAGES",
    "Candidate",
    "Candidates",
    "Chosen",
    "Coefficient",
    "Curated",
    "Quota",
    "Recipe",
    "ScalingFit",
    "ScalingSeries",
    "Source",
    "WrittenSet",
    "curate",
    "fit_exponential",
    "fit_log_linear",
    "fit_scaling",
    "get_preset",
    "nested_episodes",
    "read_candidates",
    "read_quota",
    "read_scaling_table",
    "read_source",
    "write_curated",
    "write_nested",
]
