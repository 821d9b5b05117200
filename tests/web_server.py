"""A local web server that is slow, cuts off, redirects, fails and lies."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Web:
    """Answers by path; `cuts`: bytes after which an answer is cut off, one a request; `stalls`: seconds of silence in
    the middle of an answer, one a request; `fails`: statuses, one a request; `asked`: the ranges that were asked for;
    `complete`: status of the answer to a request for what comes after the last byte.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    stalls: list[float] = field(default_factory=list)
    fails: list[int] = field(default_factory=list)
    asked: list[str | None] = field(default_factory=list)
    tag: str = '"one"'
    date: str = ""
    resumes: bool = True
    complete: int = 206
    address: str = ""


@contextmanager
def serving() -> Iterator[Web]:
    """Serve on a free port of this machine."""
    made = Web()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            made.asked.append(self.headers.get("Range"))
            if made.fails:
                return self.send_error(made.fails.pop(0))
            if self.path in made.moved:
                self.send_response(302)
                self.send_header("Location", made.moved[self.path])
                return self.end_headers()
            if self.path not in made.files:
                return self.send_error(404)
            body, begin = made.files[self.path], 0
            versions = [version for version in (made.tag, made.date) if version and not version.startswith("W/")]
            if made.resumes and self.headers.get("Range") and self.headers.get("If-Range") in versions:
                begin = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
                if begin == len(body) and made.complete == 416:
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{len(body)}")
                    self.send_header("Content-Length", "0")
                    return self.end_headers()
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")
            else:
                self.send_response(200)
            self.send_header("ETag", made.tag)
            if made.date:
                self.send_header("Last-Modified", made.date)
            self.send_header("Content-Length", str(len(body) - begin))
            self.end_headers()
            part = body[begin:]
            part = part[: made.cuts.pop(0)] if made.cuts else part
            self.wfile.write(part[: len(part) // 2])
            if made.stalls:
                self.wfile.flush()
                time.sleep(made.stalls.pop(0))
            self.wfile.write(part[len(part) // 2 :])
            return None

        def handle(self) -> None:
            try:
                super().handle()
            except ConnectionError:  # the other side has given up waiting
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
