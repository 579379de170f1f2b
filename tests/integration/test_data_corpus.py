"""Faulty data is named from the batches of a training; twins stay silent. A scan says the same of the whole set."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FAULTS, Runner

ALL: dict[str, dict[str, Any]] = json.loads((FAULTS / "expected.json").read_text())
EXPECTED = {name: facts for name, facts in ALL.items() if facts["family"] == "data"}
SCRIPT = Path(__file__).parent / "scripts" / "scanned.py"
QUICK = ("tanh-on-raw-readings", "sensor-codes-for-missing")
TWINS = ("tanh-on-raw-readings",)


def cases(quick: tuple[str, ...]) -> list[Any]:
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in sorted(EXPECTED)]


@pytest.mark.parametrize("name", cases(QUICK))
def test_faulty_data_is_named(unstuck: Runner, name: str) -> None:
    facts = EXPECTED[name]
    outcome = unstuck.run(FAULTS / "faulty" / f"{name}.py")
    standing = [finding for finding in outcome.report["findings"] if not finding["withdrawn"]]
    assert standing, outcome.err[-3000:]
    first = standing[0]
    assert first["rule"] in facts["rules"], outcome.err[-3000:]
    assert (first["severity"] == "info") == (facts.get("severity") == "info"), first
    low, high = facts["line"]
    assert low - 3 <= first["where"]["line"] <= high + 3, first["where"]
    assert outcome.report["probes_off"] == []
    assert outcome.code == 0


@pytest.mark.parametrize("name", cases(TWINS))
def test_healthy_twin_is_silent(unstuck: Runner, name: str) -> None:
    outcome = unstuck.run(FAULTS / "healthy" / f"{name}.py")
    assert outcome.loud == [], outcome.err[-3000:]
    assert [f["rule"] for f in outcome.report["findings"] if f["family"] == "data"] == []
    assert outcome.report["probes_off"] == []


# --- a scan ------------------------------------------------------------------------------------------------------


def scan(unstuck: Runner, *words: str, flags: tuple[str, ...] = (), after: str = "") -> tuple[int, str, str, Any]:
    """`unstuck scan`; `after`: Ctrl-C once the script has made this file."""
    report = unstuck.folder / f"scan-{len(unstuck.processes)}.json"
    began = time.monotonic()
    process = unstuck.start(
        "scan", "--python", sys.executable, "--workers", "2", *flags, "--report", report, SCRIPT, *words
    )
    if after:
        while not (unstuck.folder / after).exists() and time.monotonic() - began < 90:
            time.sleep(0.05)
        time.sleep(1.0)
        os.killpg(process.pid, signal.SIGINT)
    outcome = unstuck.finish(process, report, began)
    return outcome.code, outcome.out, outcome.err, outcome.report


def test_scan_lists_what_raises_hangs_is_slow_or_missing_and_goes_on(unstuck: Runner) -> None:
    code, out, err, report = scan(unstuck, "bad", flags=("--seconds-per-sample", "1.5"))
    assert code == 1, err
    found = {(f["rule"], f["where"]["sample"]): f for f in report["findings"]}
    assert {("sample-spins", 1200), ("progress-unknown", 1300), ("sample-raises", 100)} <= found.keys()
    assert found["missing-values", 55]["severity"] == "info"
    assert "broken record 100" in found["sample-raises", 100]["evidence"][0]
    assert found["sample-spins", 1200]["where"]["file"].endswith("scanned.py")
    assert "3,000 samples" in out
    assert "700 (" in out
    assert "10 = 2000" in out
    assert "trained" not in out + err


def test_scan_of_good_data_says_so(unstuck: Runner) -> None:
    code, out, err, report = scan(unstuck, "good", flags=("--limit", "500"))
    assert code == 0, out + err
    assert report["findings"] == []
    assert "Nothing found" in out
    assert "500 samples" in out


@pytest.mark.slow
def test_scan_of_a_stream(unstuck: Runner) -> None:
    code, out, err, report = scan(unstuck, "stream")
    assert code == 1, out + err
    assert [f["rule"] for f in report["findings"]] == ["sample-raises"]
    assert report["findings"][0]["where"]["sample"] == 400


@pytest.mark.slow
def test_scan_in_spawned_workers(unstuck: Runner) -> None:
    code, out, err, _ = scan(unstuck, "spawn", flags=("--limit", "300"))
    assert code == 0, out + err
    assert "300 samples" in out


@pytest.mark.slow
def test_ctrl_c_tells_what_was_seen(unstuck: Runner) -> None:
    code, out, err, _ = scan(unstuck, "long", after="began")
    assert code == 1, out + err
    assert "interrupted" in out
    assert "missing-values" in out


@pytest.mark.slow
def test_a_script_that_fails_before_is_told_from_an_empty_one(unstuck: Runner) -> None:
    code, _, err, _ = scan(unstuck, "dies")
    assert code == 2
    assert "no such table" in err
    assert "status 1" in err
    code, _, err, _ = scan(unstuck, "nothing")
    assert code == 2
    assert "no DataLoader" in err
