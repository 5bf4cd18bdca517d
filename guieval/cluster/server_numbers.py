"""Server statistics of a cluster run: combines the reports of all workers into one entry per server."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from ipaddress import ip_address
from urllib.parse import urlsplit

from guieval.engines import EndpointStats


def over_all(numbers: Iterable[EndpointStats]) -> list[EndpointStats]:
    """One entry for each name, in the order of first mention, from what several clients, or one at several times, saw of it.

    Counts and seconds are added. ``seconds_p95`` is the largest of those given, which at least 95 % of all tries together are
    not above. ``busy`` is ``None`` if there was more than one client, since nobody knows how their times overlap.
    """
    found: dict[str, EndpointStats] = {}
    for each in numbers:
        before = found.get(each.name)
        found[each.name] = each if before is None else _both(before, each)
    return list(found.values())


def named_for_all(stats: EndpointStats, machine: str) -> EndpointStats:
    """The same under a name that means one server on every machine: a loopback address gets its machine's name."""
    return replace(stats, name=f"{stats.name} on {machine}") if machine and _is_loopback(stats.name) else stats


def _both(one: EndpointStats, other: EndpointStats) -> EndpointStats:
    latencies = [each.seconds_p95 for each in (one, other) if each.seconds_p95 is not None]
    return EndpointStats(
        one.name,
        **EndpointStats.counts(one, other),
        resting=one.resting or other.resting,
        seconds_p95=max(latencies, default=None),
        aside=one.aside or other.aside,
    )


def _is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:  # a name, or no URL
        return False
