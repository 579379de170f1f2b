"""stale-dataset-in-workers: the data set was changed, and the workers do not know.

What it sees
    With persistent workers, the main process changes an attribute of the data set between passes; the workers still
    have the data set as it was when they were started, and the code that makes samples reads that attribute.

Why training stops
    It does not, but what the change was for (a new epoch's shuffling, a curriculum, an augmentation switched off)
    never happens.

Evidence
    The attribute's value in the main process and in the workers, in the same pass.

Fix
    Keep the value in shared memory (`torch.multiprocessing.Value`, a shared tensor), or do without persistent workers.

When it is wrong
    If the attribute is read only in the main process, by code that the sample path also mentions.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Fact, Finding, Fix, Where
from unstuck.rules.rule import Rule


def decide(case: Case) -> Iterable[Finding]:
    last = {(fact.pid, fact.data["loader"]): fact for fact in case.facts if fact.kind == "dataset-changed"}
    for fact in last.values():
        stale = [name for name in fact.data["read"] if _still_old(case, fact, name)]
        if not stale:
            continue
        name = stale[0]
        then, now = fact.data["changed"][name]
        kind = fact.data["type"]
        yield Finding(
            rule=RULE.name,
            family=RULE.family,
            severity="warning",
            confidence=0.95,
            title=f"the workers never see {kind}.{name} = {now!r}: they still have {then!r}",
            evidence=(
                f"in pass {fact.data['pass']} the main process has {name} = {now!r}; its persistent workers were "
                f"started with {name} = {then!r}",
                *_seen_in_worker(case, fact, name),
                f"the code that makes the samples reads {name}",
            ),
            where=_where(case, fact),
            fix=Fix(
                f"Keep {name} where all processes see it (`torch.multiprocessing.Value`, or a shared tensor), "
                f"or set persistent_workers=False so that each epoch's workers start from the data set as it is then."
            ),
            seen_by="flight",
        )


def _workers(case: Case, fact: Fact) -> list[int]:
    pids = [f.data["pids"] for f in case.facts if f.kind == "workers" and f.data["loader"] == fact.data["loader"]]
    return list(pids[-1]) if pids else []


def _states(case: Case, fact: Fact, name: str) -> list[tuple[int, object]]:
    own = _workers(case, fact)
    told = [f for f in case.facts if f.kind == "worker-dataset" and f.pid in own and f.data["pass"] > 1]
    return [(f.pid, f.data["state"][name]) for f in told if name in f.data["state"]]


def _still_old(case: Case, fact: Fact, name: str) -> bool:
    """No worker has shown a value other than the one it was started with."""
    then = fact.data["changed"][name][0]
    return all(value == then for _, value in _states(case, fact, name))


def _seen_in_worker(case: Case, fact: Fact, name: str) -> tuple[str, ...]:
    states = _states(case, fact, name)
    return (f"a worker (pid {states[-1][0]}) has {name} = {states[-1][1]!r} in its own copy",) if states else ()


def _where(case: Case, fact: Fact) -> Where:
    about = next((f.data for f in case.facts if f.kind == "loader" and f.data["loader"] == fact.data["loader"]), {})
    file, line, function = about.get("dataset_site") or about.get("site") or (None, None, None)
    return Where(file=file, line=line, function=function, pid=fact.pid)


RULE = Rule("stale-dataset-in-workers", "loop", decide)
