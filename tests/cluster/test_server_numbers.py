"""What several workers tell of servers becomes one entry a server, as counted by hand."""

from __future__ import annotations

import dataclasses

from guieval.cluster.server_numbers import named_for_all, over_all
from guieval.engines import EndpointStats, describe_endpoint
from tests.rows import every_row

ONE = EndpointStats(
    "http://a/v1", 2, 10, 1, 20.0, requests=13, retries=1, seconds_p95=3.0, prompt_tokens=100, completion_tokens=20, busy=0.5
)
OTHER = EndpointStats("http://a/v1", 1, 30, 0, 30.0, True, requests=31, seconds_p95=2.0, prompt_tokens=300, busy=0.9)
ANOTHER = EndpointStats("http://b/v1", 0, 0, 4, 0.0, requests=4, busy=1.0)


def test_a_server_of_several_workers_is_one_entry() -> None:
    both, another = over_all([ONE, ANOTHER, OTHER])
    assert another is ANOTHER
    assert both == EndpointStats(
        "http://a/v1", 3, 40, 1, 50.0, True, requests=44, retries=1, seconds_p95=3.0, prompt_tokens=400, completion_tokens=20
    )
    assert both.seconds_mean == 1.25
    assert "busy" not in describe_endpoint(both), "how the workers' times overlap is not known"


def test_what_is_added_up_again_is_the_same() -> None:
    assert over_all([*over_all([ONE, OTHER]), OTHER]) == over_all([ONE, OTHER, OTHER])
    assert over_all([]) == []


@every_row(
    ("url", "named"),
    [
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1 on box"),
        ("http://localhost:8000/v1", "http://localhost:8000/v1 on box"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1 on box"),
        ("http://10.0.0.7:8000/v1", "http://10.0.0.7:8000/v1"),
        ("http://vllm-0.vllm:8000/v1", "http://vllm-0.vllm:8000/v1"),
        ("Qwen2.5-VL on this machine's GPU", "Qwen2.5-VL on this machine's GPU"),
    ],
)
def test_a_server_of_each_machines_own_is_one_on_each(url: str, named: str) -> None:
    assert named_for_all(dataclasses.replace(ONE, name=url), "box") == dataclasses.replace(ONE, name=named)
