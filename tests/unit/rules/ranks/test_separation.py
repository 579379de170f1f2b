"""Ranks that came apart: who waits, who is missing, and which rule says so; silent while anything may still move."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unstuck.model import Case, Collective, Exit, Flight, Frame, LastPass, Look, Process, RankGroup, Stall, Thread, Wait
from unstuck.recorder.records.deaths import BatchFailed, Died, Raised
from unstuck.recorder.records.loaders import LoaderSettings
from unstuck.rules.diagnose import diagnose

SCRIPT = "/home/me/train.py"
GROUPS = (RankGroup("0", 4, ((0, 3, 1),)),)
GRAPH = Frame("/x/torch/autograd/graph.py", 1, "_engine_run_backward")
C10D = Frame("/x/torch/distributed/distributed_c10d.py", 1, "all_reduce")


def call(kind: str = "all_reduce", number: int = 7, line: int = 10, **more: object) -> Collective:
    known = {"group": "0", "entered": 50.0, "file": SCRIPT, "line": line, "function": "train", **more}
    return Collective(kind, number=number, **known)  # type: ignore[arg-type]


def rank(number: int, *calls: Collective, **more: object) -> Flight:
    known: dict[str, object] = {
        "rank": number,
        "world": 4,
        "role": "rank",
        "forming": 1.0,
        "formed": 2.0,
        "since": 49.0,
        "phase": "between",
        "step": 5,
        "groups": GROUPS,
        "collectives": calls,
        "collective_count": len(calls),
        **more,
    }
    return Flight(100 + number, **known)  # type: ignore[arg-type]


def process(number: int, *frames: Frame, kind: str = "lock", switches: int = 9) -> Process:
    thread = Thread(100 + number, wait=Wait(kind), python=True, frames=frames, switches=switches)  # type: ignore[arg-type]
    return Process(100 + number, ppid=1, role="rank", is_python=True, rank=number, threads=(thread,))


def user(line: int, **more: object) -> Frame:
    return Frame(SCRIPT, line, "train", user=True, **more)  # type: ignore[arg-type]


def case(flights: list[Flight], processes: list[Process], *, standing: float = 30.0, moved: int = 0) -> Case:
    after = [replace(p, threads=(replace(p.threads[0], switches=9 + moved),)) for p in processes]
    stalls = tuple(
        Stall(flight.pid, "between", 50.0, standing, still=standing, suspect=True) for flight in flights if flight.alive
    )
    looks = (Look(60.0, tuple(processes), stacks=True), Look(70.0, tuple(after), stacks=True))
    return Case(now=80.0, root=1, flights=tuple(flights), looks=looks, stalls=stalls)


def waiting(count: int = 3) -> tuple[list[Flight], list[Process]]:
    return [rank(n, call()) for n in range(count)], [process(n, C10D, user(10)) for n in range(count)]


def rules(of: Case) -> list[str]:
    return [finding.rule for finding in diagnose(of).findings]


def test_all_in_one_call_is_no_separation() -> None:
    flights, processes = waiting(4)
    assert "ranks" not in {finding.family for finding in diagnose(case(flights, processes)).findings}


def test_another_function_at_the_same_number_differs() -> None:
    flights, processes = waiting()
    flights.append(rank(3, call("broadcast", line=12)))
    processes.append(process(3, C10D, user(12)))
    first = diagnose(case(flights, processes)).findings[0]
    assert first.rule == "collectives-differ"
    assert first.where.rank == 3
    assert "ranks 0–2 wait in all_reduce #7 at train.py:10" in first.evidence


def test_another_shape_at_the_same_line_differs() -> None:
    flights = [rank(n, call(dtype="float32", shape=(3 if n < 3 else 5,), dimensions=1)) for n in range(4)]
    processes = [process(n, C10D, user(10)) for n in range(4)]
    first = diagnose(case(flights, processes)).findings[0]
    assert first.rule == "collectives-differ"
    assert "float32 [5]" in first.title


def test_a_branch_that_one_rank_did_not_take_is_a_skip_at_the_if() -> None:
    flights, processes = waiting()
    processes = [process(n, C10D, user(10, arms=((9, 0),))) for n in range(3)]
    flights.append(rank(3, call("barrier", line=20)))
    processes.append(process(3, C10D, user(20)))
    first = diagnose(case(flights, processes)).findings[0]
    assert (first.rule, first.where.line, first.where.rank) == ("rank-skips-collective", 9, 3)


def test_two_arms_of_one_if_differ() -> None:
    flights, processes = waiting()
    processes = [process(n, C10D, user(10, arms=((9, 0),))) for n in range(3)]
    flights.append(rank(3, call("barrier", line=12)))
    processes.append(process(3, C10D, user(12, arms=((9, 1),))))
    assert rules(case(flights, processes))[0] == "collectives-differ"


def test_a_rank_that_is_only_late_is_not_reported() -> None:
    flights, processes = waiting()
    flights.append(rank(3, phase="data", since=49.0))
    processes.append(process(3, user(30), kind="file"))
    assert rules(case(flights, processes)) == []


def test_a_rank_that_is_late_for_very_long_is() -> None:
    flights, processes = waiting()
    flights.append(rank(3))
    processes.append(process(3, user(30), kind="sleep"))
    first = diagnose(case(flights, processes, standing=400.0)).findings[0]
    assert first.rule == "rank-skips-collective"
    assert "rank 3 is at train.py:30" in first.evidence


def test_what_moves_is_not_proven() -> None:
    flights, processes = waiting()
    flights.append(rank(3, call("broadcast", line=12)))
    processes.append(process(3, C10D, user(12)))
    assert rules(case(flights, processes, moved=1)) == []


def test_ranks_elsewhere_that_cannot_be_seen_keep_it_unproven() -> None:
    flights, processes = waiting(2)
    flights.append(rank(2, call("broadcast", line=12)))
    processes.append(process(2, C10D, user(12)))
    assert rules(case(flights, processes)) == []


def test_a_rank_on_its_way_out_has_left() -> None:
    flights = [rank(n, call("ddp_gradients", pending=True), loaders=1, step=9) for n in range(3)]
    processes = [process(n, GRAPH, user(11)) for n in range(3)]
    flights.append(rank(3, call("barrier", line=30), step=2))
    processes.append(process(3, C10D, user(30, leaves=True)))
    assert rules(case(flights, processes))[0] == "rank-exited-early"


def test_a_rank_that_ended_has_left() -> None:
    flights, processes = waiting()
    flights.append(rank(3, call(number=6, left=48.0), alive=False, ended=True))
    first = diagnose(case(flights, processes)).findings[0]
    assert (first.rule, first.where.rank) == ("rank-exited-early", 3)


def uneven(ended: LastPass, *, length: int | None = 20, batch: int = 0) -> Case:
    """Three ranks are in the second pass, the last one has ended its own."""
    flights = [
        rank(n, call("ddp_gradients", pending=True), loaders=1, batch=batch, passes=(LastPass(0, 2),)) for n in range(3)
    ]
    processes = [process(n, GRAPH, user(11)) for n in range(3)]
    flights.append(rank(3, call("barrier", line=30), loaders=1, passes=(ended,)))
    processes.append(process(3, C10D, user(30)))
    loaders = tuple(
        LoaderSettings(pid=100 + n, number=0, site=(SCRIPT, 8, "train"), length=length if n < 3 else length and 18)
        for n in range(4)
    )
    return replace(case(flights, processes), loaders=loaders)


def test_fewer_batches_on_one_rank() -> None:
    first = diagnose(uneven(LastPass(0, 2, batches=18, steps=18))).findings[0]
    assert (first.rule, first.where.line, first.where.rank) == ("uneven-batches", 8, 3)
    assert "18 batches on rank 3, 20 on rank 0" in first.evidence[0]


@pytest.mark.parametrize(
    ("ended", "length", "batch", "expected"),
    [
        (LastPass(0, 2, batches=18, steps=18), None, 0, True),  # a stream: each batch made a step
        (LastPass(0, 2, batches=18, steps=9), None, 19, True),  # … or the other was seen to have more
        (LastPass(0, 2, batches=18, steps=17), None, 0, False),  # a step was skipped
        (LastPass(0, 2, batches=20, steps=19), 20, 0, False),  # as many batches as the others have
        (LastPass(0, 1, batches=18, steps=18), 20, 0, False),  # of a pass that the others have behind them
    ],
)
def test_which_passes_are_uneven(ended: LastPass, length: int | None, batch: int, expected: bool) -> None:
    assert ("uneven-batches" in rules(uneven(ended, length=length, batch=batch))) is expected


def test_an_error_in_the_data_that_was_caught() -> None:
    """Each caught one of its own: then it is no difference."""
    flights, processes = waiting()
    flights.append(rank(3, call(number=6, left=49.0), call("barrier", line=20)))
    processes.append(process(3, C10D, user(20)))
    raised = Raised(type="ValueError", frames=[(SCRIPT, 33, "load", True)])
    alone = replace(case(flights, processes), batches_failed=(BatchFailed(pid=103, raised=raised),))
    first = diagnose(alone).findings[0]
    assert (first.rule, first.where.line) == ("rank-skips-collective", 33)
    assert any("caught ValueError from train.py:33" in line for line in first.evidence)
    everyone = tuple(BatchFailed(pid=100 + n, raised=raised) for n in range(4))
    assert diagnose(replace(alone, batches_failed=everyone)).findings[0].where.line != 33


def test_two_that_receive_wait_for_each_other() -> None:
    flights = [replace(rank(n, call("recv", number=0, peer=1 - n)), world=2) for n in range(2)]
    first = diagnose(case(flights, [process(n, C10D, user(10)) for n in range(2)])).findings[0]
    assert first.rule == "collectives-differ"
    assert "recv from rank 1" in first.title


def test_a_call_that_did_not_fit_comes_before_the_wait() -> None:
    """It took as many bytes, so nobody noticed; now each waits in the next one."""
    flights = [rank(n, call(number=6, line=10), call("barrier", number=7, line=20)) for n in range(3)]
    flights.append(rank(3, call("reduce", number=6, line=14), call(number=7, line=10)))
    processes = [process(n, C10D, user(20 if n < 3 else 10)) for n in range(4)]
    first = diagnose(case(flights, processes)).findings[0]
    assert (first.rule, first.where.line, first.where.rank) == ("collectives-differ", 14, 3)


def test_shapes_that_did_not_fit_crash_a_rank() -> None:
    """Both handed their call over and went on; a thread of the backend aborted one of them."""
    shapes = ((64,), (64,), (64,), (2,))
    flights = [
        rank(n, call(shape=s, dimensions=1, dtype="float32", asynchronous=True, left=51.0), alive=False)
        for n, s in enumerate(shapes)
    ]
    found = Case(now=80.0, root=1, outcome="died", exits=(Exit(1, 1),), flights=tuple(flights))
    first = diagnose(found).findings[0]
    assert (first.rule, first.where.rank) == ("collectives-differ", 3)
    assert "float32 [2]" in first.title


def test_one_death_not_four() -> None:
    """A rank raises, the others lose their peer in a collective, the launcher ends the rest."""
    lost = Raised(type="RuntimeError", frames=[("/x/torch/distributed/distributed_c10d.py", 1, "all_reduce", False)])
    own = Raised(type="ValueError", message="bad", frames=[(SCRIPT, 33, "load", True)])
    flights = [rank(n, call(left=55.0, raised=True), alive=False, ended=True) for n in range(2)]
    flights += [rank(2, call(), alive=False), rank(3, alive=False, ended=True)]
    deaths = (
        Died(pid=103, at=54.0, raised=own),
        Died(pid=100, at=55.0, raised=lost),
        Died(pid=101, at=55.0, raised=lost),
    )
    found = Case(now=80.0, root=1, outcome="died", exits=(Exit(1, 1),), flights=tuple(flights), deaths=deaths)
    findings = diagnose(found).findings
    assert [f.rule for f in findings] == ["uncaught-exception"]
    assert findings[0].where.rank == 3
    assert "ranks 0–2 were in all_reduce #7 at train.py:10" in findings[0].evidence


def test_the_hang_of_the_missing_rank_comes_first() -> None:
    """Its own finding is the cause; the roll-call is beneath it."""
    flights, processes = waiting()
    flights.append(rank(3))
    frames = (Frame("/usr/lib/python3.11/threading.py", 5, "acquire"), user(31, takes="lock"))
    thread = Thread(
        103, wait=Wait("shared-lock", address=5, others=(), target="sem"), python=True, frames=frames, switches=9
    )
    processes.append(Process(103, ppid=1, role="rank", is_python=True, rank=3, threads=(thread,)))
    first, *more = diagnose(case(flights, processes, standing=400.0)).findings
    assert (first.family, first.where.rank) == ("hang", 3)
    assert "ranks 0–2 wait in all_reduce #7 at train.py:10" in first.evidence
    assert more == []


def test_what_the_backend_dumped_counts_before_what_python_saw() -> None:
    """On a GPU each call returns at once; the dumps say which one never ended."""
    flights = [
        rank(n, call(left=50.0), dumped=(call(number=412, left=None if n < 3 else 50.5),), alive=False)
        for n in range(4)
    ]
    flights[3] = replace(flights[3], dumped=(call(number=411, left=50.5),))
    found = Case(now=80.0, root=1, outcome="died", exits=(Exit(1, 1),), flights=tuple(flights))
    first = diagnose(found).findings[0]
    assert "ranks 0–2 were in all_reduce #412 at train.py:10" in first.evidence
    assert first.where.rank == 3
