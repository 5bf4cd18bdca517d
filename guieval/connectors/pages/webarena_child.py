"""Runs code of a WebArena-Infinity checkout in a process of its own.

``serve FOLDER`` serves an app on this machine only and prints the port; ``verify FILE URL`` prints a task's verdict as a JSON
list of a truth value and a reason. The process ends with the one that started it.
"""

from __future__ import annotations

import ctypes
import http.server
import json
import os
import runpy
import signal
import socketserver
import sys

PR_SET_PDEATHSIG = 1


def main(action: str, path: str, url: str = "") -> None:
    """Do what the module's docstring describes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if action == "verify":
        success, reason = runpy.run_path(path)["verify"](url)
        print("\n" + json.dumps([bool(success), str(reason)[:2000]]))
        return
    activate, bind = socketserver.TCPServer.server_activate, socketserver.TCPServer.server_bind

    def on_this_machine(server: socketserver.TCPServer) -> None:
        server.server_address = ("127.0.0.1", 0)
        bind(server)

    def announced(server: socketserver.TCPServer) -> None:
        activate(server)
        print(server.server_address[1], flush=True)

    socketserver.TCPServer.server_bind = on_this_machine  # type: ignore[method-assign,assignment]
    socketserver.TCPServer.server_activate = announced  # type: ignore[method-assign,assignment]
    # a line for each request would fill the pipe that nobody reads
    http.server.BaseHTTPRequestHandler.log_message = lambda *arguments: None  # type: ignore[method-assign]
    os.chdir(path)
    sys.argv = ["server.py", "--port", "0"]
    runpy.run_path("server.py", run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
