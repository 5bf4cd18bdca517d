"""Started by the Python that has NeMo Gym: the app of the real server scores the rows' responses; one JSON line for each."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient
from nemo_gym.base_resources_server import BaseResourcesServerConfig
from nemo_gym.server_utils import ServerClient

from guieval.plugins.nemo_gym_server import GuievalResourcesServer


def response(text: str) -> dict[str, Any]:
    """What a model server of NeMo Gym returns."""
    part = {"type": "output_text", "text": text, "annotations": []}
    message = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    more = {"object": "response", "parallel_tool_calls": False, "tool_choice": "none", "tools": []}
    return {"id": "r", "created_at": 0.0, "model": "scripted", "output": [message], **more}


def main() -> None:
    rows, replies = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    config = BaseResourcesServerConfig(host="127.0.0.1", port=0, entrypoint="app.py", name="guieval")
    server = GuievalResourcesServer(config=config, server_client=ServerClient.model_construct())
    with TestClient(server.setup_webserver()) as client:
        for line in rows.read_text().splitlines():
            row = json.loads(line)
            answer = client.post("/verify", json={**row, "response": response(replies[row["key"]])})
            answer.raise_for_status()
            found = answer.json()
            print(json.dumps({name: found[name] for name in ("key", "reward", "verdict", "type_match")}))


main()
