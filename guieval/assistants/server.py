"""The tools as a server of the Model Context Protocol, by the official SDK (the extra ``mcp``); only its command imports this.

What the SDK needs to know of a tool, it reads from the function: its name, its docstring, the types and descriptions of its
arguments.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import ValidationError

from guieval.assistants.reading import Json, ReadingTools
from guieval.assistants.run_folder import AllowedRuns
from guieval.assistants.starting import GivenToRuns, StartingTools
from guieval.data.shipped import __version__
from guieval.errors import GuievalError, first_problem
from guieval.reports.tables.writers import json_text, plain

INSTRUCTIONS = """guieval evaluates GUI agents: models that look at a screenshot and choose the next action.
A run stores every response, so that any published protocol is applied later: score. Quote a metric with its n and interval, and
name the protocol. Before you explain a low metric, look at wrong steps: list_steps, then show_step, whose picture shows a wrong
coordinate frame at once. Compare two runs with compare, which uses the same steps, and not by eye."""
CANNOT_START = "\nThis server only reads. Its user can start it with --allow-run, which adds start_run."


class GuievalServer(MCPServer[Any]):
    """A server whose tools fail with one sentence: that of the error, or of the first argument that is wrong."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None) -> Any:
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                problem = first_problem(cause)
                return _refusal(f"argument {problem.field!r} of {name}: {problem.sentence}")
            if isinstance(cause, GuievalError):
                return _refusal(str(cause))
            raise


def server(runs: Path, starting: GivenToRuns | None) -> MCPServer[Any]:
    """The server of the runs below a folder; it starts runs, with what is given to them, unless ``starting`` is ``None``."""
    made = GuievalServer(
        "guieval", version=__version__, instructions=INSTRUCTIONS + CANNOT_START * (starting is None), log_level="WARNING"
    )
    logging.getLogger("mcp.server").setLevel(logging.ERROR)  # a refusal is for the model, and not a line in the client's log
    reading = ReadingTools(runs)
    only_reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    for tool in reading.every():
        made.tool(annotations=only_reads)(_answering(tool))
    made.tool(annotations=only_reads, structured_output=False)(_with_picture(reading))
    if starting is not None:
        tools = StartingTools(AllowedRuns(runs), starting)
        for tool in tools.every():
            reads = tool == tools.run_status
            made.tool(annotations=ToolAnnotations(read_only_hint=reads, destructive_hint=False))(_answering(tool))
    return made


def _answering(tool: Callable[..., Json]) -> Callable[..., Json]:
    """The tool with plain values, for JSON."""

    @wraps(tool)
    def answer(*arguments: Any, **named: Any) -> Json:
        values: Json = plain(tool(*arguments, **named))
        return values

    return answer


def _with_picture(reading: ReadingTools) -> Callable[..., list[Any]]:
    @wraps(reading.show_step)
    def show_step(*arguments: Any, **named: Any) -> list[Any]:
        values, picture = reading.show_step(*arguments, **named)
        if picture is None:
            return [json_text(values)]
        written = io.BytesIO()
        picture.convert("RGB").save(written, "JPEG", quality=85)
        return [json_text(values), Image(data=written.getvalue(), format="jpeg")]

    return show_step


def _refusal(sentence: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=" ".join(sentence.split()))], is_error=True)
