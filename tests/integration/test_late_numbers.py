"""Numbers of a GPU are read late and without waiting: the same way, tried on a machine that has none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Runner

SCRIPT = Path(__file__).parent / "scripts" / "late_numbers.py"


def test_numbers_that_come_later(unstuck: Runner) -> None:
    outcome = unstuck.run(SCRIPT)
    assert outcome.code == 0, outcome.err[-3000:]
    assert outcome.report["probes_off"] == []
    told = json.loads(outcome.out)
    assert told["first"], "the values are those of the script"
    assert 64 <= told["count"] < 150, "all at first, then some"
    assert told["nonfinite_step"] == 151
    assert told["births"] == 1
    assert min(told["moved"]) >= 10
    assert min(told["graded"]) >= 10
    assert told["cosines"] >= 10
    assert (told["stale"], told["checked"] >= 10) == (0, True)
    (finding,) = outcome.loud
    assert finding["rule"] == "nonfinite-born"
    assert "from step 151 on" in finding["title"]
    assert "--trace-nan" in finding["fix"]["text"]


@pytest.mark.slow
def test_each_loss_is_waited_for(unstuck: Runner) -> None:
    outcome = unstuck.run(SCRIPT, flags=("--trace-nan",))
    told = json.loads(outcome.out)
    assert told["count"] == 150, "every one of them"
    (finding,) = outcome.loud
    assert finding["rule"] == "nonfinite-born"
    assert finding["where"]["step"] == 150
    assert "--trace-nan" not in finding["fix"]["text"]
