"""Judges the folders of an agent's run with WebArena-Verified's evaluator, and prints a line of JSON for every task.

It runs in the Python that has the package, in which guieval need not be installed, so it imports neither guieval nor its
packages. Source: ServiceNow/webarena-verified 1.2.3 (Apache-2.0), ``webarena_verified.api.WebArenaVerified``.
"""

import json
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

HARD = "assets/dataset/subsets/webarena-verified-hard.json"


def main(folder: Path, config: str) -> None:
    """Print the rows; whatever the package prints goes to standard error."""
    out, sys.stdout = sys.stdout, sys.stderr
    from webarena_verified.api import WebArenaVerified

    judge = WebArenaVerified(config=Path(config) if config else None)
    hard = set(json.loads(files("webarena_verified").joinpath(HARD).read_text(encoding="utf-8"))["task_ids"])
    for task in judge.get_tasks():
        row = {
            "task_id": task.task_id,
            "intent": task.intent,
            "sites": [str(site) for site in task.sites],
            "task_type": str(task.eval[0].expected.task_type).lower(),
            "hard": task.task_id in hard,
            **judged(judge, task.task_id, folder / str(task.task_id)),
        }
        print(json.dumps(row), file=out, flush=True)


def judged(judge: Any, task: int, folder: Path) -> dict[str, Any]:
    """The evaluator's verdict on a task's folder; ``missing`` if the agent left nothing."""
    response, trace = folder / judge.config.agent_response_file_name, folder / judge.config.trace_file_name
    if not response.is_file() and not trace.is_file():
        return {"status": "missing"}
    result = judge.evaluate_task(task_id=task, agent_response=response, network_trace=trace)
    return {
        "status": str(result.status),
        "score": result.score,
        "object": response.is_file() and is_object(response),
        "reason": reason(result),
        "webarena_verified": result.webarena_verified_version,
        "data": result.webarena_verified_data_checksum,
        "evaluator": result.webarena_verified_evaluator_checksum,
    }


def is_object(response: Path) -> bool:
    """Whether an agent's response is a JSON object, as the package asks for."""
    try:
        return isinstance(json.loads(response.read_bytes()), dict)
    except ValueError:
        return False


def reason(result: Any) -> str:
    """The evaluator's error, or the names of the assertions that failed."""
    failed = [
        assertion.assertion_name
        for evaluator in result.evaluators_results
        for assertion in evaluator.assertions or ()
        if assertion.status != "success"
    ]
    errors = [result.error_msg, *(evaluator.error_msg for evaluator in result.evaluators_results)]
    return " ".join("; ".join([*filter(None, errors), *failed]).split())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
