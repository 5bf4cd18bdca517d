"""The plug-ins keep guieval's contracts, and a scripted server's accuracy comes out as the score."""

from pathlib import Path

from guieval import ActionEvaluator, Click, Point, evaluate_run, list_protocols, load_benchmark, load_model, run
from guieval.conformance import check_adapter, check_benchmarks
from guieval.playground.mock_server import MockServer, MockSettings


def test_the_benchmark_conforms() -> None:
    assert check_benchmarks(["kiosk"]) == []


def test_the_adapter_conforms() -> None:
    assert check_adapter(load_model("kiosk-1", adapter="kiosk_agent")) == []


def test_a_click_counts_inside_the_box_only(tmp_path: Path) -> None:
    assert "kiosk-strict" in list_protocols("kiosk")
    step = load_benchmark("kiosk", tmp_path).episode("lyon-single").steps[0]
    [(left, _, _, bottom)] = step.targets
    evaluate = ActionEvaluator("kiosk-strict").evaluate
    assert evaluate(step, Click(point=Point(left + 1, bottom - 1))).exact_match
    assert not evaluate(step, Click(point=Point(left - 1, bottom - 1))).exact_match


def test_a_perfect_agent_scores_1(tmp_path: Path) -> None:
    settings = MockSettings(model="kiosk-1", adapter="kiosk_agent", policy="reference", served_models=("kiosk-1",))
    with MockServer(settings, benchmark=load_benchmark("kiosk", tmp_path / "data")) as server:
        out = tmp_path / "run"
        run(
            model="kiosk-1",
            adapter="kiosk_agent",
            bench="kiosk",
            data=str(tmp_path / "data"),
            base_urls=[server.base_url],
            out=out,
        )
    assert evaluate_run(out).summary.exact_match.count == 30
