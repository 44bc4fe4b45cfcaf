"""A server on this machine whose answers are good, bad or late, as its addresses say."""

import re
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["Server"]


class Handler(BaseHTTPRequestHandler):
    """The first part of the path says how to answer: /range/file, /broken/file, …"""

    server: "Server"

    def do_GET(self) -> None:
        how, name = self.path.strip("/").split("/", 1)
        asked = self.headers.get("Range")
        self.server.asked.append((how, asked))
        content = self.server.content.get(name, b"")
        start = int(re.findall(r"\d+", asked)[0]) if asked else 0
        if how in ("missing", "denied"):
            self.send_error({"missing": 404, "denied": 403}[how])
        elif how == "slow":
            time.sleep(1)
        elif how == "range" and start >= len(content) and asked:
            self.answer(416, b"", {})
        elif how == "range" and asked:
            given = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
            self.answer(206, content[start:], given)
        elif how == "shifted" and asked:  # another part than was asked for
            self.answer(206, content[1:], {"Content-Range": f"bytes 1-{len(content) - 1}/*"})
        elif how == "wrong":
            self.answer(200, content[::-1], {})
        elif how == "encoded":
            self.answer(200, content, {"Content-Encoding": "gzip"})
        elif how == "broken":
            self.answer(200, content, {}, end=len(content) // 2)
        else:
            self.answer(200, content, {})

    def answer(
        self, code: int, body: bytes, headers: dict[str, str], end: int | None = None
    ) -> None:
        self.send_response(code)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body[:end])

    def log_message(self, *args: object) -> None:
        """Nothing to the terminal."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content: dict[str, bytes] = {}
        self.asked: list[tuple[str, str | None]] = []  # how to answer, Range

    def url(self, how: str, name: str = "file.bin") -> str:
        return f"http://127.0.0.1:{self.server_port}/{how}/{name}"
