"""A scripted server that speaks the OpenAI protocol, for trying guieval without a GPU, for its tests and for load runs.

It answers in any model family's own format, after latencies that are a pure function of (seed, step, try), with faults chosen
the same way, and counts what it saw. So two clients, or one client twice, meet exactly the same server. It knows no model:
replies are written by an adapter's ``render`` from a policy's action.
"""

from guieval.mock_server.app import latency_of
from guieval.mock_server.policies import random_action, wrong_action
from guieval.mock_server.server import MockServer, serve
from guieval.mock_server.settings import HOSTILE, MALFORMED, MockSettings

__all__ = ["HOSTILE", "MALFORMED", "MockServer", "MockSettings", "latency_of", "random_action", "serve", "wrong_action"]
