"""file-lock-held: who the finding names as the holder."""

from __future__ import annotations

from tests.unit.rules.record_cases import saved_case
from unstuck.rules.hang import file_lock_held


def test_a_lock_that_the_same_process_holds_by_another_open_file() -> None:
    (finding,) = file_lock_held.decide(saved_case("flock-own-handle"))
    assert finding.title.endswith("that it holds")
    assert "the file that is already open" in finding.fix.text


def test_two_workers_that_hold_what_the_other_wants() -> None:
    (finding,) = file_lock_held.decide(saved_case("flock-shard-pairs"))
    assert "that worker 1 (pid 9739) holds" in finding.title
    assert "deadlock: worker 1 (pid 9739) is waiting for it in turn" in finding.evidence
    assert finding.also[0].worker == 1
