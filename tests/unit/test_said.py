"""What the helper says, back in the process that is watched."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest

from unstuck.model import Finding, Fix, Where
from unstuck.said import Listener
from unstuck.serial import to_plain

FOUND = Finding("main-spins", "hang", "error", 0.9, "t", ("e",), Where("a.py", 3, pid=7), Fix("f"), "py-spy")


def lines(*findings: list[Finding]) -> io.BytesIO:
    said = ({"findings": [to_plain(each) for each in some], "html": "<b>page</b>"} for some in findings)
    return io.BytesIO(b"".join(json.dumps(line).encode() + b"\n" for line in said))


def test_each_finding_is_heard_once_and_when_it_is_withdrawn() -> None:
    heard: list[Finding] = []
    gone = replace(FOUND, withdrawn=True, severity="info")
    Listener(lines([FOUND], [FOUND], [gone]), heard.append, None).close()
    assert heard == [FOUND, gone]


def test_a_callback_that_raises_is_called_once(capsys: pytest.CaptureFixture[str]) -> None:
    calls: list[Finding] = []
    shown: list[str] = []

    def fail(finding: Finding) -> None:
        calls.append(finding)
        raise RuntimeError("mine")

    other = replace(FOUND, rule="sample-spins")
    Listener(lines([FOUND, other]), fail, shown.append).close()
    assert calls == [FOUND]
    assert "RuntimeError: mine" in capsys.readouterr().err
    assert shown == ["<b>page</b>"]
