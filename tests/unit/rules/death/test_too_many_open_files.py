"""too-many-open-files, on Cases made by hand."""

from __future__ import annotations

from tests.unit.rules.record_cases import CASES, saved_case
from unstuck.rules.diagnose import diagnose


def test_a_worker_without_descriptors_may_leave_main_waiting() -> None:
    case = saved_case("handles-never-closed-standing", CASES.parent / "more")
    first = diagnose(case).findings[0]
    assert first.rule == "too-many-open-files"
    assert "254 of 256" in first.title
    assert any(line.startswith("waits-for-nobody") for line in first.consequences)
