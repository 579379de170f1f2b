"""sample-retries: what is said of a path, and what of an address."""

from __future__ import annotations

from tests.unit.rules.record_cases import saved_case
from unstuck.rules.hang import sample_retries


def test_an_address_is_no_path() -> None:
    (finding,) = sample_retries.decide(saved_case("retry-feature-server"))
    assert "tried 9 times to connect, last 127.0.0.1:57795" in finding.evidence[1]
    assert "Make sure 127.0.0.1:57795 answers" in finding.fix.text
    assert not any("No such file" in line for line in finding.evidence)


def test_a_path_that_does_not_exist_is_named_with_the_sample() -> None:
    (finding,) = sample_retries.decide(saved_case("retry-missing-clip"))
    assert finding.where.sample == 95
    assert "tried from outside: No such file or directory" in finding.evidence
    assert "clip_95.npy does not exist" in finding.fix.text
