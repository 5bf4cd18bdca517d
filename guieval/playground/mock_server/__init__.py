"""A scripted server that speaks the OpenAI protocol, for trying guieval without a GPU, for its tests and for load runs.

It answers in any model family's own format, with latencies and faults that are a pure function of (seed, step, try), and counts
its requests. So it behaves exactly the same for two clients, or for one client twice. It has no model: an adapter's ``render``
writes responses from a policy's action.
"""

from guieval.playground.mock_server.app import latency_of
from guieval.playground.mock_server.policies import random_action, wrong_action
from guieval.playground.mock_server.server import MockServer, serve
from guieval.playground.mock_server.settings import HOSTILE, MALFORMED, MockSettings

__all__ = ["HOSTILE", "MALFORMED", "MockServer", "MockSettings", "latency_of", "random_action", "serve", "wrong_action"]
