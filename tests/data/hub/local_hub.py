"""A hub on this machine: the endpoints that ``huggingface_hub`` asks for a data set, its tree, its branches and its files."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "5efbb1f0" * 5


class LocalHub(ThreadingHTTPServer):
    """One data set. ``cut`` names a file whose first transfer breaks off in the middle."""

    daemon_threads = True

    def __init__(self, repository: str, files: dict[str, bytes], cut: str = "", error: tuple[int, str] | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repository, self.files, self.cut, self.error = repository, files, cut, error
        self.transfers: list[tuple[str, str]] = []
        """Name and Range of every file that was asked for."""
        self.uploads: dict[str, bytes] = {}
        self.created: dict[str, Any] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: LocalHub

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        hub, path = self.server, unquote(urlsplit(self.path).path)
        api, resolve = f"/api/datasets/{hub.repository}", f"/datasets/{hub.repository}/resolve/{COMMIT}/"
        if hub.error is not None:
            self._refuse(*hub.error)
        elif path.startswith(resolve) and path.removeprefix(resolve) in hub.files:
            self._file(path.removeprefix(resolve))
        elif path in (api, f"{api}/revision/main", f"{api}/revision/{COMMIT}"):
            siblings = [{"rfilename": name, "size": len(content)} for name, content in hub.files.items()]
            card = {"license": "apache-2.0"}
            self._json({"id": hub.repository, "sha": COMMIT, "siblings": siblings, "cardData": card, "tags": []})
        elif path == f"{api}/tree/{COMMIT}":
            self._json([{"type": "file", "path": name, "size": len(c), "oid": _etag(c)} for name, c in hub.files.items()])
        elif path == f"{api}/refs":
            main = {"name": "main", "ref": "refs/heads/main", "targetCommit": COMMIT}
            self._json({"branches": [main], "tags": [], "converts": []})
        else:
            self._refuse(404, "RevisionNotFound" if path.startswith(api) else "RepoNotFound")

    def do_POST(self) -> None:
        hub, path = self.server, unquote(urlsplit(self.path).path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        api = f"/api/datasets/{hub.repository}"
        if hub.error is not None:
            self._refuse(*hub.error)
        elif path == "/api/repos/create":
            hub.created = json.loads(body)
            self._json({"url": f"{hub.url}/datasets/{hub.repository}", "name": hub.repository})
        elif path == "/api/validate-yaml":
            self._json({"errors": [], "warnings": []})
        elif path == f"{api}/preupload/main":
            names = [each["path"] for each in json.loads(body)["files"]]
            self._json({"files": [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]})
        elif path == f"{api}/commit/main":
            for line in body.splitlines():
                part = json.loads(line)
                if part["key"] == "file":
                    hub.uploads[part["value"]["path"]] = base64.b64decode(part["value"]["content"])
            url = f"{hub.url}/datasets/{hub.repository}/commit/{COMMIT}"
            self._json({"commitUrl": url, "commitOid": COMMIT, "success": True})
        else:
            self._refuse(404, "RepoNotFound")

    def _file(self, name: str) -> None:
        content = self.server.files[name]
        asked = self.headers.get("Range", "")
        start = int(asked.removeprefix("bytes=").split("-")[0]) if asked else 0
        self.send_response(206 if asked else 200)
        self.send_header("ETag", f'"{_etag(content)}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(content) - start))
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        if self.command == "HEAD":
            return
        self.server.transfers.append((name, asked))
        if name == self.server.cut and not asked:
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
            return
        self.wfile.write(content[start:])

    def _json(self, value: object) -> None:
        text = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def _refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()


def _etag(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()


@contextmanager
def serving(hub: LocalHub) -> Iterator[LocalHub]:
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join()
