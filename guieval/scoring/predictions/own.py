"""guieval's own predictions file, JSON lines: the step's name with a unified ``action`` or a raw ``response``.

What other tools should write; documented in docs/predictions.md. ``subset`` ("") is needed where the benchmark has subsets.
``action`` is a unified action, [0, 1000] per axis, or null where the reply held none; in its place ``response`` is the reply
as the model gave it, which the model's adapter reads when the file is scored.
"""

from __future__ import annotations

from guieval.actions import action_from_json
from guieval.scoring.predictions.predicted import Format, Predicted
from guieval.scoring.predictions.rows import Row

_FIELDS = frozenset({"subset", "episode_id", "step_index", "action", "response"})


def _read(row: Row) -> Predicted:
    for field in row.values:
        if field not in _FIELDS:
            raise row.error(field, f"is none of {', '.join(sorted(_FIELDS))}")
    key = ("", row.text("subset") if "subset" in row.values else "", row.text("episode_id"), row.whole("step_index"))
    if len({"action", "response"} & row.values.keys()) != 1:
        raise row.error("action", "a prediction holds either an action (null: the reply held none) or a response")
    if "response" in row.values:
        return Predicted(*key, response=row.text("response"))
    given = row.values["action"]
    if given is None:
        return Predicted(*key, reason="there is no answer")
    return Predicted(*key, row.build("action", lambda: action_from_json(given)))


FORMAT = Format(
    "guieval",
    "guieval's own JSON lines, see docs/predictions.md",
    frozenset({"episode_id", "step_index"}),
    lambda rows, steps: _read,
    one_of=frozenset({"action", "response"}),
)
