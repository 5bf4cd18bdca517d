"""UI-R1's rewards on completions as models write them, well and badly."""

from __future__ import annotations

from guieval.rewards import action_reward, coordinate_reward, format_reward
from tests.rows import every_row

CLICK = "<answer>[{'action': 'click' ,'coordinate': [100, 200, 300, 400] }]</answer>"
BACK = "<answer>[{'action': 'navigate_back' ,'coordinate': [0,0,0,0]}]</answer>"


def message(answer: str) -> str:
    return f"<think>so</think> <answer>{answer}</answer>"


def click(x: int, y: int) -> str:
    return message(f"[{{'action': 'click', 'coordinate': [{x}, {y}]}}]")


@every_row(
    ("answer", "solution", "reward"),
    [
        ("[{'action': 'click', 'coordinate': [1, 2]}]", CLICK, 1.0),
        ("[{'action': click, 'coordinate': [1, 2]}]", CLICK, 1.0),  # without quotes too
        ("{'action':'navigate_back'}", BACK, 1.0),
        ("[{'action': 'Click', 'coordinate': [1, 2]}]", CLICK, 0.0),
        ('[{"action": "click", "coordinate": [1, 2]}]', CLICK, 0.0),  # only single quotes are looked for
        ("[{'action': 'click'}]", BACK, 0.0),
        ("", "<answer></answer>", 0.0),  # two answers that say nothing do not agree
    ],
)
def test_actions_agree_by_their_quoted_names(answer: str, solution: str, reward: float) -> None:
    assert action_reward(message(answer), solution) == reward


def test_only_the_first_answer_counts() -> None:
    assert action_reward(message("[{'action': 'scroll'}]") + click(150, 250), CLICK) == 0.0
    assert coordinate_reward(click(150, 250) + click(9, 9), CLICK) == 1.0
    assert action_reward("[{'action': 'click', 'coordinate': [150, 250]}]", CLICK) == 0.0
    # other actions need no place
    assert coordinate_reward(message("[{'action': 'navigate_back'}]"), BACK) == 1.0
    assert coordinate_reward(message("[{'action': 'scroll'}]"), BACK) == 0.0


@every_row(
    ("x", "y", "reward"), [(100, 200, 1.0), (300, 400, 1.0), (99, 200, 0.0), (301, 400, 0.0), (100, 199, 0.0), (300, 401, 0.0)]
)
def test_a_click_hits_up_to_the_border_of_the_box(x: int, y: int, reward: float) -> None:
    assert coordinate_reward(click(x, y), CLICK) == reward


@every_row(("x", "reward"), [(66, 0.0), (67, 1.0), (200, 1.0), (201, 0.0)])
def test_scaled_points_are_cut_to_whole_pixels(x: int, reward: float) -> None:
    # 66 x 1.504 = 99.264, 67 x 1.504 = 100.768, 200 x 1.504 = 300.8 which is cut to 300, 201 x 1.504 = 302.304
    assert coordinate_reward(click(x, 300), CLICK, (1.504, 1.0)) == reward


def test_a_missing_place_is_the_corner_and_a_number_without_end_a_miss() -> None:
    bare = message("[{'action': 'click'}]")
    assert coordinate_reward(bare, CLICK) == 0.0
    assert coordinate_reward(bare, "<answer>[{'action': 'click' ,'coordinate': [0, 0, 50, 50] }]</answer>") == 1.0
    assert coordinate_reward(bare, "<answer>[{'action': 'click'}]</answer>") == 1.0
    broken = message("[{'action': 'click', 'coordinate': [150.5, 250]}]")
    assert coordinate_reward(broken, CLICK) == 0.0  # no integers, no point
    assert coordinate_reward(message(f"[{{'action': 'click', 'coordinate': [{'9' * 5000}, 1]}}]"), CLICK) == 0.0
    assert coordinate_reward(message(f"[{{'action': 'click', 'coordinate': [{'9' * 400}, 1]}}]"), CLICK, (1.5, 1.5)) == 0.0


@every_row(
    ("completion", "reward"),
    [
        ("<think>a</think><answer>b</answer>", 1.0),
        ("<think>a\nb</think>\n <answer></answer>", 1.0),
        ("<think>a</think><answer>b</answer><answer>c</answer>", 1.0),
        ("<think>a</think> so <answer>b</answer>", 0.0),
        ("<think>a</think><answer>b</answer> ", 0.0),
        ("<answer>b</answer>", 0.0),
        ("<answer>b</answer><think>a</think>", 0.0),
        ("", 0.0),
    ],
)
def test_the_format_is_a_thought_and_an_answer(completion: str, reward: float) -> None:
    assert format_reward(completion) == reward
