"""Hand-made findings for tests of what is reported about a run."""

from __future__ import annotations

from unstuck.model import Finding, Fix, Severity, Where


def finding(
    family: str, severity: Severity = "error", *, rule: str = "", pid: int = 77, withdrawn: bool = False
) -> Finding:
    return Finding(
        rule=rule or f"a-{family}",
        family=family,
        severity=severity,
        confidence=0.9,
        title="It is so",
        evidence=(),
        where=Where("train.py", 3, "main", pid),
        fix=Fix("Mend it."),
        seen_by="flight",
        withdrawn=withdrawn,
    )
