"""Readers of the notations that models' responses share: tags, JSON, call expressions and points.

Only notation is tolerated (a fence, a missing bracket, an unescaped quote); what a call *means* is up to the adapters. Nothing
is ever evaluated as code. Every function raises :class:`guieval.errors.ParseError`, and nothing else, for what it cannot read.
"""

from guieval.models.parsing.call_tables import CallTable, ScrollWords
from guieval.models.parsing.calls import CallExpression, call_text, first_call, quoted
from guieval.models.parsing.function_tags import function_calls, function_text
from guieval.models.parsing.json_values import MAX_DEPTH, MAX_REPAIR, json_value, named_object
from guieval.models.parsing.points import clicked, decoded, first_place, is_place, numbers, place, stated_place
from guieval.models.parsing.tags import closed_thought, first_round, first_thought, split_reasoning, tagged

__all__ = [
    "MAX_DEPTH",
    "MAX_REPAIR",
    "CallExpression",
    "CallTable",
    "ScrollWords",
    "call_text",
    "clicked",
    "closed_thought",
    "decoded",
    "first_call",
    "first_place",
    "first_round",
    "first_thought",
    "function_calls",
    "function_text",
    "is_place",
    "json_value",
    "named_object",
    "numbers",
    "place",
    "quoted",
    "split_reasoning",
    "stated_place",
    "tagged",
]
