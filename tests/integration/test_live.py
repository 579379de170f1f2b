"""`unstuck run --live` in real browsers: the token, loopback, several pages at once, and the end of the run."""

from __future__ import annotations

import contextlib
import http.client
import re
import select
import socket
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psutil
import pytest

from tests.browser import opened, started
from tests.conftest import Runner

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Trains until the file `end` is there: a test takes as long as it takes.
TRAINING = """
import os, sys, time
import torch

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(64, 4)
y = x.sum(1, keepdim=True)
most, pause = int(sys.argv[1]), float(sys.argv[2])
for step in range(most):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    if pause:
        time.sleep(pause)
    if step % 64 == 0 and os.path.exists("end"):
        break
"""
FAST = """
import torch

weight = torch.nn.Parameter(torch.ones(1))
optimizer = torch.optim.SGD([weight], lr=1e-6, foreach=False)
for step in range(1_000_000):
    weight.grad = None
    (weight * weight).backward()
    optimizer.step()
"""
WAITING = """
import os, time

while not os.path.exists("end"):
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as running:
        yield running


class LiveRun:
    def __init__(self, unstuck: Runner, *words: str, text: str = TRAINING) -> None:
        script = unstuck.folder / "train.py"
        script.write_text(text)
        self.end = unstuck.folder / "end"
        self.process = unstuck.start("run", "--live", script, *words)
        self.address = self._address()
        parts = urlsplit(self.address)
        self.port, self.path = parts.port or 0, parts.path

    def _address(self) -> str:
        stream, said = self.process.stderr, b""
        assert stream is not None
        until = time.monotonic() + 60
        while time.monotonic() < until and self.process.poll() is None:
            if select.select([stream], [], [], 1.0)[0]:
                said += stream.read1()  # type: ignore[attr-defined]
            if found := re.search(rb"http://127\.0\.0\.1:\d+/\S+/", said):
                return found[0].decode()
        raise AssertionError(f"no address was printed: {said!r}")

    def ask(self, path: str, **headers: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path, headers=headers)
            return connection.getresponse().status
        finally:
            connection.close()

    def finish(self) -> None:
        self.end.touch()
        assert self.process.wait(60) == 0


def _steps(page: Any) -> int:
    found = re.search(r"([\d,]+) steps", page.locator(".run").inner_text())
    return int(found[1].replace(",", "")) if found else 0


def _until(page: Any, true: Any, what: str) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if true():
            return
        page.wait_for_timeout(200)
    raise AssertionError(what)


def test_two_browsers_follow_a_run_to_its_end(browser: Browser, unstuck: Runner) -> None:
    run = LiveRun(unstuck, "1000000", "0.005")
    with opened(browser, run.address) as one, opened(browser, run.address, "phone", "dark") as two:
        for seen in (one, two):
            first = _steps(seen.page)
            _until(seen.page, lambda s=seen, n=first: _steps(s.page) > n, "no step was added")
            assert seen.visible_without_scrolling("h1")
            assert seen.page.locator(".plot").count() >= 2
        run.finish()
        for seen in (one, two):
            _until(seen.page, lambda s=seen: s.page.locator("#live").inner_text() == "ended", "it goes on")
            assert "finished after" in seen.page.locator(".run").inner_text()
            assert seen.errors == []
            assert {urlsplit(url).netloc for url in seen.requests} == {f"127.0.0.1:{run.port}"}
    with pytest.raises(ConnectionRefusedError):
        run.ask(run.path)


def test_nobody_else_gets_in(unstuck: Runner) -> None:
    run = LiveRun(unstuck, text=WAITING)
    token = run.path.strip("/")
    assert run.ask(f"/{token}/") == 200
    wrong = (token[:-1], f"{token}x", token[::-1], "%00", "..", "")
    for path in ("/", "/events", *(f"/{word}/" for word in wrong), *(f"/{word}/events" for word in wrong)):
        assert run.ask(path) == 403, path
    assert run.ask(f"/{token}/other") == 404
    for host in ("evil.example", f"evil.example:{run.port}", "127.0.0.1", ""):
        assert run.ask(f"/{token}/", Host=host) == 403, host
    assert run.ask(f"/{token}/", Host=f"localhost:{run.port}") == 200
    listening = [c for c in psutil.Process(run.process.pid).net_connections() if c.status == psutil.CONN_LISTEN]
    assert [c.laddr.ip for c in listening if c.laddr.port == run.port] == ["127.0.0.1"]
    with contextlib.ExitStack() as left_open:  # browsers that read nothing do not keep the run
        for request in ("events HTTP/1.1", "events HTTP/1.1", *[None] * 100):
            deaf = left_open.enter_context(socket.create_connection(("127.0.0.1", run.port), timeout=30))
            if request is not None:
                deaf.sendall(f"GET {run.path}{request}\r\nHost: 127.0.0.1:{run.port}\r\n\r\n".encode())
        run.finish()


@pytest.mark.slow
def test_a_million_steps_leave_page_and_supervisor_small(browser: Browser, unstuck: Runner) -> None:
    run = LiveRun(unstuck, text=FAST)
    supervisor = psutil.Process(run.process.pid)
    with opened(browser, run.address) as seen:
        session = seen.page.context.new_cdp_session(seen.page)
        session.send("Performance.enable")
        sizes = []
        while run.process.poll() is None:
            seen.page.wait_for_timeout(5000)
            with contextlib.suppress(psutil.NoSuchProcess):
                sizes.append(supervisor.memory_info().rss)
        session.send("HeapProfiler.collectGarbage")
        metrics = {item["name"]: item["value"] for item in session.send("Performance.getMetrics")["metrics"]}
        assert seen.errors == []
    print(f"page {metrics['JSHeapUsedSize'] / 1e6:.1f} MB; supervisor {[size >> 20 for size in sizes]} MB")
    assert metrics["JSHeapUsedSize"] < 50e6
    assert max(sizes[len(sizes) // 2 :]) < sizes[len(sizes) // 4] * 1.1
