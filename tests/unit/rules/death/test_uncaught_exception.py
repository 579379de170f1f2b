"""uncaught-exception, on Cases made by hand."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.rules.death.runs import said
from unstuck.model import Case, Exit, Flight
from unstuck.recorder.records.deaths import Died, Raised, TaskFailed
from unstuck.rules import death
from unstuck.rules.diagnose import diagnose


def test_an_exit_code_of_the_script_itself_is_no_finding() -> None:
    assert said(Case(outcome="died", root=5, exits=(Exit(5, code=2),), flights=(Flight(5, role="main"),))) == []


def died(pid: int, at: float, kind: str, *frames: tuple[str, int, str, bool]) -> Died:
    return Died(pid=pid, at=at, raised=Raised(type=kind, frames=list(frames)))


def test_an_exception_of_a_helper_is_not_that_of_the_run() -> None:
    helper = died(6, 1.0, "ValueError", ("/a/h.py", 3, "f", True))
    root = died(5, 2.0, "KeyError", ("/a/t.py", 9, "main", True))
    flights = (Flight(5, role="main"), Flight(6, role="helper"))
    case = Case(outcome="died", root=5, exits=(Exit(5, code=1),), flights=flights, deaths=(helper, root))
    finding = diagnose(case, death.RULES).findings[0]
    assert (finding.where.file, finding.where.line) == ("/a/t.py", 9)


def test_below_a_launcher_the_first_rank_counts() -> None:
    run = "/venv/lib/python3.11/site-packages/torch/distributed/run.py"
    launcher = died(5, 9.0, "ChildFailedError", (run, 1, "run", False))
    second = died(7, 8.0, "RuntimeError", ("/a/t.py", 30, "m", True))
    first = died(6, 7.0, "ValueError", ("/a/t.py", 20, "m", True))
    flights = (Flight(5, role="launcher"), Flight(6, role="rank", rank=0), Flight(7, role="rank", rank=1))
    deaths = (first, second, launcher)
    case = Case(outcome="died", root=5, exits=(Exit(5, code=1),), flights=flights, deaths=deaths)
    finding = diagnose(case, death.RULES).findings[0]
    assert (finding.rule, finding.where.rank, finding.where.line) == ("uncaught-exception", 0, 20)


def of_pool(message: str) -> Died:
    remote = Raised(type="RemoteTraceback", how="cause")
    frames = [("/py/multiprocessing/pool.py", 774, "get", False), ("/a/t.py", 9, "main", True)]
    return Died(pid=5, at=9.0, raised=Raised(type="ValueError", message=message, frames=frames, chain=[remote]))


def of_task(pid: int, at: float, message: str, line: int) -> TaskFailed:
    return TaskFailed(
        pid=pid, at=at, raised=Raised(type="ValueError", message=message, frames=[("/a/t.py", line, "f", True)])
    )


def test_what_a_pool_hands_over_is_told_where_the_task_raised_it() -> None:
    tasks = (of_task(6, 1.0, "caught", 30), of_task(7, 8.0, "no room", 40), of_task(6, 9.5, "no room", 50))
    flights = (Flight(5, role="main"), Flight(6, role="main"), Flight(7, role="main"))
    case = Case(
        outcome="died",
        root=5,
        exits=(Exit(5, code=1),),
        flights=flights,
        deaths=(of_pool("no room"),),
        tasks_failed=tasks,
    )
    finding = diagnose(case, death.RULES).findings[0]
    assert (finding.rule, finding.where.pid, finding.where.line) == ("uncaught-exception", 7, 40)
    other = Died(
        pid=5, at=9.0, raised=Raised(type="ValueError", message="no room", frames=[("/a/t.py", 9, "main", True)])
    )
    finding = diagnose(replace(case, deaths=(other,)), death.RULES).findings[0]
    assert (finding.where.pid, finding.where.line) == (5, 9)
