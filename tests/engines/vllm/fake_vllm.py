"""Stands in for vLLM's server in tests: takes its arguments, starts processes of its own, and answers as the mock server.

What else it does is in the environment variable FAKE_VLLM, as JSON: ``pids`` (a file that gets one JSON line a start, with
``args`` and the process ids), ``until`` (waits for this file), ``crash`` (ends at start with this exit code, after printing
``lines``), ``never`` (listens to nobody), ``unwell`` (so many times it answers with status 503 first), ``answers`` (further
settings of the mock server).
"""

from __future__ import annotations

import argparse
import http.server
import json
import os
import signal
import subprocess
import sys
import time

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"


class Unwell(http.server.BaseHTTPRequestHandler):
    """What a server answers while it is loading behind a proxy."""

    def do_GET(self) -> None:
        self.send_error(503)


def main() -> None:
    result = json.loads(os.environ["FAKE_VLLM"])
    parser = argparse.ArgumentParser()
    parser.add_argument("--served-model-name")
    parser.add_argument("--port", type=int)
    known, _ = parser.parse_known_args()
    # one worker that does not listen to SIGTERM, and one that has left for a session of its own
    workers = [
        subprocess.Popen([sys.executable, "-S", "-c", STUBBORN], stdout=subprocess.PIPE, start_new_session=alone)
        for alone in (False, True)
    ]
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == b"deaf\n"
    with open(result["pids"], "a") as file:
        pids = [os.getpid(), *(worker.pid for worker in workers)]
        file.write(json.dumps({"args": sys.argv[1:], "pids": pids, "supervisor": os.getppid()}) + "\n")
    print("loading weights:   1%\rloading weights: 100%\n\x1b[31mready or not\x1b[0m", flush=True)
    while "until" in result and not os.path.exists(result["until"]):
        time.sleep(0.01)
    if "crash" in result:
        print("\n".join(result.get("lines", ["CUDA error: out of memory"])), flush=True)
        os._exit(result["crash"])
    if result.get("never"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    if "unwell" in result:
        with http.server.HTTPServer(("127.0.0.1", known.port), Unwell) as unwell:
            for _ in range(result["unwell"]):
                unwell.handle_request()
    from guieval.playground.mock_server import MockSettings, serve

    serve(MockSettings(port=known.port, served_models=(known.served_model_name,), **result.get("answers", {"policy": "fixed"})))


if __name__ == "__main__":
    main()
