"""A web server of our own, which can be told to misbehave, and a cache of our own."""

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from experiments.datasets import CACHE_DIR_VARIABLE, DATA_DIR_VARIABLE


@dataclass
class Site:
    """What is served, how badly, and what was asked for."""

    url: str
    files: dict = field(default_factory=dict)
    etags: dict = field(default_factory=dict)
    #: Bytes after which a response stops, taken in turn; None: at its end.
    cuts: list = field(default_factory=list)
    #: Status codes to answer instead, taken in turn.
    statuses: list = field(default_factory=list)
    ranges: bool = True
    lengths: bool = True
    chunked: bool = False
    #: Called before the second half of a file is sent.
    halfway: object = None
    requests: list = field(default_factory=list)

    def put(self, path, content, etag='"v1"'):
        self.files[path], self.etags[path] = content, etag
        return f"{self.url}/{path}"

    def headers_of(self, number):
        return self.requests[number][1]


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        site = self.server.site
        path = self.path.lstrip("/")
        site.requests.append((path, dict(self.headers)))
        status = site.statuses.pop(0) if site.statuses else 200
        if status != 200 or path not in site.files:
            self.send_error(status if status != 200 else 404)
            return
        self._send(site, site.files[path], site.etags[path])

    def _send(self, site, content, etag):
        start = self._start(site, etag)
        if start and start >= len(content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.end_headers()
            return
        body = content[start:]
        self.protocol_version = "HTTP/1.1" if site.chunked else "HTTP/1.0"
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if site.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif site.lengths:
            self.send_header("Content-Length", str(len(body)))
        if etag:
            self.send_header("ETag", etag)
        self.end_headers()
        cut = site.cuts.pop(0) if site.cuts else None
        body = body[:cut]
        if site.chunked:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(body), body) + b"0\r\n\r\n" * (cut is None))
            return
        self.wfile.write(body[: len(body) // 2])
        if site.halfway:
            self.wfile.flush()
            site.halfway()
        self.wfile.write(body[len(body) // 2 :])

    def _start(self, site, etag):
        wanted = self.headers.get("Range")
        if not (site.ranges and wanted and self.headers.get("If-Range") == etag):
            return 0
        return int(wanted.removeprefix("bytes=").rstrip("-"))


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Say nothing of clients that hang up, as many of ours do."""


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = _Server(("127.0.0.1", 0), _Handler)
    server.site = Site(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.site
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and no data folder."""
    monkeypatch.setenv(CACHE_DIR_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv(DATA_DIR_VARIABLE, raising=False)
    monkeypatch.setattr("experiments.datasets.loading.SHIPPED_FOLDER", tmp_path / "shipped")
    return tmp_path / "cache"
