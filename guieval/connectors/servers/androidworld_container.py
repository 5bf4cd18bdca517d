"""AndroidWorld's own server with what it lacks, to be started in its container: ``python3 androidworld_container.py``.

It is ``server/android_server.py`` of google-research/android_world at d9c569f, with these requests added or replaced:

- ``/screenshot`` has the same pixels as a PNG in base64, a few hundredths of what a list of numbers costs;
- ``/gesture`` swipes or drags from a place to another, in pixels: a scroll of the original begins in the middle of the screen;
- ``/suite/tasks`` has complexity and apps of each task, also of families that guieval has no table of.

guieval is not needed in the container: this file imports AndroidWorld alone.
"""

import base64
import io
from typing import Any, Literal

from pydantic import BaseModel


class Gesture(BaseModel):
    """A finger that goes from ``start`` to ``end``, (x, y) in pixels; a drag takes hold of what is at its start first."""

    kind: Literal["swipe", "drag"]
    start: tuple[int, int]
    end: tuple[int, int]
    milliseconds: int


def served() -> Any:
    """AndroidWorld's application with the requests above."""
    from android_world.env import adb_utils
    from PIL import Image
    from server.android_server import AndroidEnv, AndroidSuite, app

    async def screenshot(wait_to_stabilize: bool, env: AndroidEnv) -> dict[str, str]:
        state = env.get_state(wait_to_stabilize=wait_to_stabilize)
        stream = io.BytesIO()
        Image.fromarray(state.pixels).save(stream, "PNG", compress_level=1)
        return {"pixels": base64.b64encode(stream.getvalue()).decode()}

    async def gesture(body: Gesture, env: AndroidEnv) -> dict[str, str]:
        command = adb_utils.generate_swipe_command if body.kind == "swipe" else adb_utils.generate_drag_and_drop_command
        adb_utils.issue_generic_request(command(*body.start, *body.end, body.milliseconds), env.controller)
        return {"status": "success"}

    async def tasks(suite: AndroidSuite) -> dict[str, dict[str, Any]]:
        return {name: {"complexity": task.complexity, "apps": list(task.app_names)} for name, (task, *_) in suite.items()}

    app.router.routes[:] = [route for route in app.router.routes if getattr(route, "path", None) != "/screenshot"]
    app.add_api_route("/screenshot", screenshot, methods=["GET"])
    app.add_api_route("/gesture", gesture, methods=["POST"])
    app.add_api_route("/suite/tasks", tasks, methods=["GET"])
    return app


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(served(), host="0.0.0.0", port=5000)
