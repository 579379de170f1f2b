"""Every faulty script of the corpus is named and located; healthy twins and the silent scripts are left alone.

What is run and what is expected is in tests/faults/expected.json (tests/faults/README.md says what its fields mean).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests import memory_group
from tests.conftest import Outcome, Runner
from tests.corpus import FAULTY, HEALTHY, SILENT, Faulty, Healthy, Script, Silent, parameters
from unstuck import text


def run(unstuck: Runner, script: Script, *words: str) -> tuple[Outcome, int]:
    """The outcome, and how many processes the kernel OOM-killed."""
    options: dict[str, Any] = {"flags": script.flags, "launch": script.launch, "env": script.env, "limit": script.limit}
    if script.memory is None:
        return unstuck.run(script.path, *words, **options), 0
    group = memory_group.make(script.memory)
    if group is None:
        pytest.skip("no memory cgroup can be made here")
    try:
        return unstuck.run(script.path, *words, preexec_fn=group.enter, **options), group.kills
    finally:
        group.remove()


def candidates(outcome: Outcome, script: Faulty) -> list[dict[str, Any]]:
    """The findings of which the first must be the expected one."""
    findings: list[dict[str, Any]] = outcome.report["findings"]
    if script.among == "family":
        return [finding for finding in findings if finding["family"] == script.family]
    if script.among == "standing":
        return [finding for finding in findings if not finding["withdrawn"]]
    return outcome.loud


@pytest.mark.parametrize("script", parameters(FAULTY, "faulty"))
def test_faulty_script_is_named(unstuck: Runner, script: Faulty) -> None:
    outcome, kills = run(unstuck, script)
    findings = candidates(outcome, script)
    if script.alone and script.rules[0] not in [finding["rule"] for finding in findings]:
        pytest.skip("others use the machine: then it may not be said")
    assert findings, f"nothing said; stderr:\n{outcome.err[-3000:]}"
    first = findings[0]
    assert first["rule"] in script.rules, outcome.err[-3000:]
    if script.only:
        assert len(findings) == 1, "one cause, what follows from it beneath"
    check_place(first["where"], script)
    check_words(first, script)
    if script.memory is not None:
        assert kills >= 1
        assert text.size(script.memory) in first["title"]
    if script.shown:
        assert first["title"].split(",")[0][:30] in " ".join(outcome.err.split())
        assert "step" in outcome.err.partition("── unstuck")[2]
    if script.consequence is not None and outcome.code != 0:
        assert first["consequences"][0].startswith(f"{script.consequence}: "), first
    if script.code is not None:
        assert outcome.code != 0 if script.code == "not 0" else outcome.code == script.code, outcome.err[-3000:]
    if script.signal is not None:
        assert outcome.report["run"]["signal"] == script.signal
    check_run(outcome, script)


def check_place(where: dict[str, Any], script: Faulty) -> None:
    if script.spots:
        assert where["file"].endswith(script.path.name), where
        missing = where["line"] is None and script.line_may_be_missing
        assert missing or any(low <= where["line"] <= high for low, high in script.spots), (where, script.spots)
    if script.sample is not None:
        assert where["sample"] == script.sample
    if script.worker is not None:
        assert where["worker"] == script.worker


def check_words(finding: dict[str, Any], script: Faulty) -> None:
    if script.severity is not None:
        assert finding["severity"] in (("error", "warning") if script.severity == "loud" else (script.severity,))
    assert finding["title"].startswith(script.title)
    assert len(finding["evidence"]) >= script.evidence
    for words in script.says:
        assert any(words in line for line in finding["evidence"]), (words, finding["evidence"])
    assert finding["fix"]["text"]


def check_run(outcome: Outcome, script: Script) -> None:
    if script.outcome is not None:
        assert outcome.report["run"]["outcome"] == script.outcome
    if script.probes_off is not None:
        assert outcome.report["probes_off"] == list(script.probes_off)


def check_silence(unstuck: Runner, script: Healthy, *words: str) -> None:
    outcome, kills = run(unstuck, script, *words)
    said = outcome.told if script.strict else outcome.loud
    assert [finding for finding in said if finding["family"] != script.may_say] == [], outcome.err[-3000:]
    assert script.without_family not in [finding["family"] for finding in outcome.report["findings"]]
    assert (outcome.code, kills) == (0, 0), outcome.err[-3000:]
    if script.quiet:
        assert "unstuck" not in outcome.err
    check_run(outcome, script)


@pytest.mark.parametrize("script", parameters(HEALTHY, "healthy"))
def test_healthy_twin_is_silent(unstuck: Runner, script: Healthy) -> None:
    check_silence(unstuck, script)


@pytest.mark.parametrize("script", parameters({n: s for n, s in SILENT.items() if not s.seeds}, "healthy"))
def test_script_is_left_alone(unstuck: Runner, script: Silent) -> None:
    check_silence(unstuck, script)


@pytest.mark.parametrize(
    ("script", "seed"),
    [
        pytest.param(
            script, seed, id=f"{name}-{seed}", marks=script.marks("healthy" if seed == script.seeds[0] else "")
        )
        for name, script in SILENT.items()
        for seed in script.seeds
    ],
)
def test_training_is_left_alone_with_each_seed(unstuck: Runner, script: Silent, seed: int) -> None:
    check_silence(unstuck, script, "--seed", str(seed))
