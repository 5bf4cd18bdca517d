"""What a scaffold changes on MobileGym: one agent that knows the way to eight of ten tasks, in four scaffolds.

Run it as ``PYTHONPATH=MOBILEGYM python -m perf.scaffolds FOLDER --url http://127.0.0.1:4173``; it may be stopped and started
again. It writes a run for each scaffold, and says how they are compared. The agent clicks where a person clicked with seed 0,
and waits for ever instead of finishing three of the eight tasks.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

import guieval
from guieval.actions import ActionSpace, action_from_json
from guieval.frames import PER_999
from guieval.history import HistoryEntry
from guieval.models import ABCModel, ModelInput, ParsedResponse, Request, chat
from guieval.steps import StepTaskModel

WAYS: dict[str, tuple[str, str, bool]] = {
    "sms.OpenConversationBySender": ("打开来自建设银行的短信会话", "短信 364,677", True),
    "sms.ToggleFreeNetworkSetting": ("把短信里自动转为彩信设为关闭", "短信 916,97 457,474 820,554", False),
    "weather.EnableNightDnd": ("打开天气的夜间免打扰", "天气 900,85 761,213 850,520", True),
    "tencent_meeting.ToggleNotification": ("帮我把腾讯会议的消息通知关闭", "腾讯会议 89,81 465,960 880,160", True),
    "tencent_meeting.ConfigAudioSettings": (
        "帮我设置一下腾讯会议，入会时麦克风打开，扬声器关闭",
        "腾讯会议 89,81 465,960 880,366 880,428",
        False,
    ),
    "wechat.SetMomentsVisibleRange": (
        "设置微信朋友查看我朋友圈的范围为全部可见",
        "微信 875,976 187,547 135,685 468,458 385,338 281,648",
        True,
    ),
    "calendar.ChangeDefaultReminder": ("把日历默认提前提醒改成30分钟前", "日历 881,90 546,855 up up 418,156 500,710", True),
    "wechat.DeauthorizeApp": (
        "取消微信对微信读书的授权",
        "微信 875,976 187,547 196,746 468,197 145,438 500,897 500,850",
        False,
    ),
    "alipay.SetFontSizeLevel": ("把支付宝字体大小调到比最大小一档", "支付宝 900,977 932,68 235,795 156,343 724,962", True),
    "clock.ToggleAlarm": ("关闭22:30的闹钟", "时钟", True),
}
"""Of each task its goal, its app with what is clicked or swiped there, and whether the agent finishes. Two ways are wrong."""
SCAFFOLDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "budget": {"budget": {"flat": 7}},
    "loop": {"ending": {"loop": {"equal": 3, "effect": "terminate"}}},
    "rule": {"success": {"above": 0.99, "needs_stop": False}},
}


def _action(word: str) -> dict[str, Any]:
    if word == "up":
        return {"type": "SCROLL", "point": [500, 500], "direction": word}
    return {"type": "CLICK", "point": [float(number) for number in word.split(",")]}


def actions(goal: str, step: int) -> dict[str, Any]:
    """What the agent does in a step of a task."""
    way, finishes = next((way.split(), finishes) for known, way, finishes in WAYS.values() if known == goal)
    done = [{"type": "OPEN", "app": way[0]}, *map(_action, way[1:]), *([{"type": "STOP"}] if finishes else [])]
    return done[step] if step < len(done) else {"type": "WAIT"}


class KnownWays(ABCModel):
    """The agent."""

    action_space = ActionSpace()
    fixed_frame = PER_999

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        return chat(json.dumps(actions(task.instruction, task.step_index)), self.image(task))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        return ParsedResponse(action_from_json(text))

    def respond(self, request: Request) -> str:
        return request.input.text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--url", required=True, help="address of MobileGym's page")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    tasks = folder / "tasks.txt"
    tasks.write_text("".join(f"{name}\n" for name in WAYS), encoding="utf-8")
    for name, fields in SCAFFOLDS.items():
        scaffold, out = folder / f"{name}.yaml", folder / name
        about = {"name": f"known-ways-{name}-default", "families": [Path(__file__).stem], **fields}
        scaffold.write_text(yaml.safe_dump(about), encoding="utf-8")
        if out.exists():
            guieval.run(resume=out)
            continue
        guieval.run(
            model="known-ways",
            adapter=Path(__file__),
            scaffold=str(scaffold),
            engine="local",
            bench="mobilegym",
            bench_options={"url": arguments.url, "split": "all", "pause": 0.5},
            mode="online",
            episodes=tasks,
            out=out,
        )
    print("next: guieval compare", *(folder / name for name in SCAFFOLDS), '--metrics "success rate"')


if __name__ == "__main__":
    main()
