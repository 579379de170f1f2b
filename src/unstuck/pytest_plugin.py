"""pytest --unstuck: a test that hangs, or trains in vain, is explained.

Loaded by pytest in every environment that has unstuck: nothing of unstuck is imported before it is used. With
--unstuck every test is watched: one that is certainly stuck fails with the explanation, and the others go on; what is
found about one that fails anyway stands in its report. The fixture `unstuck` watches one test, and fails it for a
training that is stuck or learns nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Generator, Iterator

    from unstuck.model import Finding

WAKE = signal.SIGRTMIN + 6 if hasattr(signal, "SIGRTMIN") else 0  # the recorder's own is 5 above it
SECTION = "unstuck"
WATCHING = "unstuck watching"  # the name of the plugin that --unstuck registers


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("unstuck", "explain tests that hang or train in vain")
    group.addoption("--unstuck", action="store_true", help="watch every test; one that is certainly stuck fails")
    group.addoption(
        "--unstuck-stall-after",
        type=float,
        metavar="S",
        help="treat S seconds without progress as a hang, instead of judging by the test's own pace",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--unstuck"):
        config.pluginmanager.register(Watching(config), WATCHING)


class Stuck(Exception):
    """Raised in a test that cannot go on."""


class TestWatch:
    """The recorder and its helper around one test, or around several that do not train."""

    __test__ = False  # for pytest

    def __init__(self, config: pytest.Config) -> None:
        self.findings: list[Finding] = []
        self.running = False
        """A test runs: only there may it be told that it is stuck."""
        self._helper: subprocess.Popen[bytes] | None = None
        self._said = b""
        self._stuck: list[Finding] = []
        self._before: Any = signal.SIG_DFL
        if not sys.platform.startswith("linux") or os.environ.get("UNSTUCK_FLIGHT_DIR"):
            return  # nothing can be watched, or `unstuck run` does so
        if threading.current_thread() is not threading.main_thread():
            return
        from unstuck import api
        from unstuck.supervise.flight_folder import make_folder

        folder, _ = make_folder()
        if folder is None:
            return
        self._before = signal.signal(WAKE, self._wake)
        capturing: Any = config.pluginmanager.getplugin("capturemanager")
        # What the helper itself has to say, of a test that cannot be woken, goes to the terminal.
        with capturing.global_and_fixture_disabled() if capturing is not None else nullcontext():
            stall_after = config.getoption("--unstuck-stall-after")
            self._helper = api.start_helper(folder, stall_after, None, says=True, wake=WAKE)
        api.record(folder)

    @property
    def trained(self) -> bool:
        """A loader, a backward pass or an optimizer was seen."""
        if self._helper is None:
            return False
        from unstuck.recorder import flight
        from unstuck.recorder import layout as at

        return any(flight.words[at.W_SINCE + phase] for phase in (at.DATA, at.BACKWARD, at.OPTIMIZER))

    def close(self) -> list[Finding]:
        """End it, and give what was found."""
        helper, self._helper = self._helper, None
        if helper is not None:
            from unstuck import api

            api.stop_recording()
            api.dismiss(helper)
            assert helper.stdout is not None
            os.set_blocking(helper.stdout.fileno(), True)
            while self._heard(helper.stdout.fileno()):
                pass
            helper.stdout.close()
            helper.wait()
            signal.signal(WAKE, self._before)
        return self._stuck or self.findings

    def _heard(self, descriptor: int) -> bool:
        """Take in some of what the helper says. False at its end."""
        from unstuck.said import Said

        chunk = os.read(descriptor, 1 << 16)
        *lines, self._said = (self._said + chunk).split(b"\n")
        if lines:
            self.findings = [finding for finding in Said(lines[-1]).findings if not finding.withdrawn]
        return bool(chunk)

    def _wake(self, *_: object) -> None:
        """The helper is certain that what runs cannot go on. It has said why, and then sent the signal."""
        __tracebackhide__ = True
        if not self.running or self._helper is None or self._helper.stdout is None:
            return
        descriptor = self._helper.stdout.fileno()
        os.set_blocking(descriptor, False)
        try:
            while self._heard(descriptor):
                pass
        except BlockingIOError:
            pass
        self._stuck = self.findings  # that it ends now proves nothing
        cause = self._stuck[0] if self._stuck else None
        raise Stuck(f"{cause.title} [{cause.rule}]" if cause is not None else "the test cannot go on")


def explanation(findings: list[Finding]) -> str:
    """As on a terminal."""
    from unstuck.model import Case
    from unstuck.report.screen import Screen
    from unstuck.report.terminal import render
    from unstuck.rules.diagnose import Diagnosis

    case = Case(cwd=os.getcwd(), command=("pytest",), outcome="finished")
    return render(case, Diagnosis(tuple(findings)), Screen(width=100), live=False).strip()


class Watching:
    """--unstuck."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.watch: TestWatch | None = None

    # Old-style wrappers: this file is loaded wherever unstuck is installed, whatever the pytest.

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, Any, None]:
        if self.watch is None:
            self.watch = TestWatch(self._config)
        yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self) -> Generator[None, Any, None]:
        assert self.watch is not None
        self.watch.running = True
        yield
        if self.watch is not None:
            self.watch.running = False

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, call: Any) -> Generator[None, Any, None]:
        report = (yield).get_result()
        ended = call.when == "teardown" or (call.when == "call" and report.failed)
        if not ended or self.watch is None or not self.watch.trained:
            return
        findings, self.watch = self.watch.close(), None  # what comes next is another run
        if findings and report.failed:
            report.sections.append((SECTION, explanation(findings)))
        loud = [finding for finding in findings if finding.severity != "info"]
        report.user_properties += [(SECTION, f"{f.severity}: {f.title} [{f.rule}]") for f in loud]

    def pytest_sessionfinish(self) -> None:
        if self.watch is not None:
            self.watch.close()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        reports = [report for reports in terminalreporter.stats.values() for report in reports]
        lines = {
            f"{report.nodeid}: {value}": None
            for report in reports
            for name, value in getattr(report, "user_properties", ())
            if name == SECTION
        }
        if lines:
            terminalreporter.section(SECTION)
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture
def unstuck(request: pytest.FixtureRequest) -> Iterator[TestWatch]:
    """Watches this test; it fails if its training is found stuck, broken or learning nothing (an error, no warning)."""
    session: Any = request.config.pluginmanager.getplugin(WATCHING)
    watch = session.watch if session is not None else TestWatch(request.config)
    watch.running = True
    yield watch
    watch.running = False
    errors = [finding for finding in watch.close() if finding.severity == "error"]
    if errors:
        pytest.fail(explanation(errors), pytrace=False)
