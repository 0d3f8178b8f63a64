"""A notebook on the network, in which roles under test record clusters: a file per name, PUT, GET and DELETE."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@contextmanager
def file_server(directory: Path) -> Iterator[str]:
    """Its address, while it is open."""

    class FileHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self._file().exists():
                self._answer(200, self._file().read_bytes())
            else:
                self._answer(404)

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            there = self._file().exists()
            if there and self.headers.get("If-None-Match") == "*":
                self._answer(412)
                return
            self._file().write_bytes(body)
            self._answer(200 if there else 201)

        def do_DELETE(self) -> None:
            there = self._file().exists()
            self._file().unlink(missing_ok=True)
            self._answer(204 if there else 404)

        def _file(self) -> Path:
            return directory / Path(self.path).name

        def _answer(self, status: int, body: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), FileHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
