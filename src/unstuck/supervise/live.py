"""`--live`: the page of a run that is still running, for browsers on this machine only.

Loopback, a random token in the address, the Host header checked (another site's script cannot get here by a name that
points to 127.0.0.1). One state is kept, whoever looks; it is made by the supervisor's own loop, and only while somebody
looks. Loaded with that option alone.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from unstuck.report.html_report import html, live_change

UPDATE_SECONDS = 2.0  # between two states: to make one takes some hundredths of a second
FIRST_STATE_SECONDS = 10.0  # that the first browser waits for one
BEAT_SECONDS = 10.0  # of silence after which a line is sent, to notice that a browser is gone
LAST_SECONDS = 3.0  # that browsers get to read the last state
MAX_LISTENERS = 16  # connections that listen; each is a thread
MAX_CONNECTIONS = 64
MAX_REQUEST_SECONDS = 20.0  # that a connection may say nothing


class Live:
    """The server, in threads of its own that end with the process."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(24)
        self.changed = threading.Condition()
        self.version, self.ended = 0, False
        self.view: dict[str, Any] = {}
        self.change = b""
        self.listeners = 0
        self._asked = False
        self._next = 0.0
        self._made = -UPDATE_SECONDS
        live = self

        class Bound(Handler):
            state = live

        self._server = Server(("127.0.0.1", 0), Bound)
        self.port = self._server.server_address[1]
        self.hosts = {f"127.0.0.1:{self.port}", f"localhost:{self.port}"}
        threading.Thread(target=self._server.serve_forever, name="live page", daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    def wanted(self, now: float) -> bool:
        """Somebody looks, and it is time for a new state."""
        if not (self.listeners or self._asked) or now < self._next:
            return False
        self._next = now + UPDATE_SECONDS
        return True

    def publish(self, view: dict[str, Any], *, ended: bool = False) -> None:
        change = json.dumps(live_change(view)).encode()
        with self.changed:
            self.view, self.change, self.ended = view, change, ended
            self.version, self._made = self.version + 1, time.monotonic()
            self._asked = False
            self.changed.notify_all()

    def newest(self) -> dict[str, Any]:
        """The state as of now, for a browser that has just come; empty if none comes in time."""
        with self.changed:
            if time.monotonic() < self._made + UPDATE_SECONDS:
                return self.view
            known, self._asked = self.version, True
            self.changed.wait_for(lambda: self.version != known or self.ended, FIRST_STATE_SECONDS)
            return self.view

    def after(self, seen: int) -> tuple[int, bytes]:
        """The next state and its number, or the same one again after some time, or at the end."""
        with self.changed:
            self.changed.wait_for(lambda: self.version != seen or self.ended, BEAT_SECONDS)
            return self.version, self.change

    def close(self) -> None:
        """Let browsers read the last state, then end."""
        with self.changed:
            self.ended = True
            self.changed.notify_all()
            self.changed.wait_for(lambda: not self.listeners, LAST_SECONDS)
        self._server.shutdown()
        self._server.server_close()


class Server(ThreadingHTTPServer):
    """With a bound on its threads: whoever has no token can still connect."""

    daemon_threads = True
    _room = threading.BoundedSemaphore(MAX_CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a browser that went away is no news, and standard error is the training's."""


class Handler(BaseHTTPRequestHandler):
    state: Live
    timeout = MAX_REQUEST_SECONDS
    server_version, sys_version = "unstuck", ""

    def do_GET(self) -> None:
        _, _, rest = self.path.partition("/")
        token, _, page = rest.partition("/")
        known = hmac.compare_digest(token.encode("utf-8", "replace"), self.state.token.encode())
        if not known or self.headers.get("Host", "") not in self.state.hosts:
            self._answer(403, b"This page needs the address that unstuck printed.\n", "text/plain")
        elif page == "":
            self._page()
        elif page == "events":
            self._events()
        else:
            self._answer(404, b"There is nothing here.\n", "text/plain")

    def _page(self) -> None:
        view = self.state.newest()
        if view:
            self._answer(200, html(view, live=True).encode(), "text/html; charset=utf-8")
        else:
            self._answer(503, b"Nothing is known of the run yet: try again.\n", "text/plain")

    def _events(self) -> None:
        state = self.state
        with state.changed:
            full = state.listeners >= MAX_LISTENERS
            state.listeners += not full
            seen = state.version
        if full:
            self._answer(503, b"Too many pages are open.\n", "text/plain")
            return
        try:
            self._head(200, "text/event-stream")
            while True:
                version, change = state.after(seen)
                self.wfile.write(b"data: " + change + b"\n\n" if version != seen else b": \n\n")
                seen = version
                if state.ended:
                    self.wfile.write(b"event: end\ndata: \n\n")
                    return
        except OSError:
            return  # the browser is gone
        finally:
            with state.changed:
                state.listeners -= 1
                state.changed.notify_all()

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self._head(status, kind, len(body))
        self.wfile.write(body)

    def _head(self, status: int, kind: str, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in (
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
        ):
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: standard error is the training's."""
