"""MobileWorld's own server, started in a clone with an ``adb`` that is a stub: ``mobileworld_stub.py PORT FOLDER``.

``FOLDER`` gets the stub, which has a grey screen of 1080 x 2400 and notes what it is called with. The tasks are three of this
file: one is done as far as a tap, a swipe and an answer were; of the others one needs the user, and one tools.
"""

import os
import sys
from pathlib import Path
from typing import Any

import uvicorn
from mobile_world.core import server
from mobile_world.tasks.base import BaseTask
from PIL import Image

ADB = """#!/bin/sh
echo "$*" >> "$FOLDER/asked"
case "$*" in
    *"wm size"*) echo "Physical size: 1080x2400" ;;
    *screencap*) cat "$FOLDER/screen.png" ;;
    *getprop*) echo 1 ;;
    *) echo OK ;;
esac
"""


class Alarm(BaseTask):  # type: ignore[misc]  # the release has no types
    goal, app_names, task_tags = "Set it, and say when.", frozenset({"Clock"}), frozenset({"lang-en"})
    snapshot_tag = "init_state"

    def initialize_task_hook(self, controller: Any) -> bool:
        (folder / "asked").write_text("")
        return True

    def is_successful(self, controller: Any) -> tuple[float, str]:
        asked = (folder / "asked").read_text()
        done = ["input tap 540 1200" in asked, "input swipe 540 1800 540 1200" in asked, controller.interaction_cache == "7"]
        return sum(done) / len(done), f"{sum(done)} of {len(done)}"


class Ask(Alarm):
    task_tags, relevant_information = frozenset({"agent-user-interaction"}), "It is at seven."


class Search(Alarm):
    task_tags = frozenset({"agent-mcp"})


port, folder = int(sys.argv[1]), Path(sys.argv[2])
(folder / "adb").write_text(ADB)
(folder / "adb").chmod(0o755)
Image.new("RGB", (1080, 2400), "grey").save(folder / "screen.png")
os.environ.update(FOLDER=str(folder), PATH=f"{folder}:{os.environ['PATH']}")
server.TaskRegistry._scan_and_register_tasks = lambda self: self.tasks.update(Alarm=Alarm(), Ask=Ask(), Search=Search())
server.initialize_suite_family("mobile_world")
uvicorn.run(server.app, host="127.0.0.1", port=port, log_level="warning")
