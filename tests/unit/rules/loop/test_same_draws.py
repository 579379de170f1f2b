"""duplicate-samples-across-workers: own processes that began with the same random numbers."""

from __future__ import annotations

from unstuck.model import Case
from unstuck.recorder.records.loaders import FirstSent
from unstuck.rules.loop import duplicate_samples_across_workers

SITE = ("/project/train.py", 12, "make_views")
PRINTS = list(range(8))


def titles(*sent: FirstSent) -> list[str]:
    return [finding.title for finding in duplicate_samples_across_workers.decide(Case(first_sent=sent))]


def sent(pid: int, prints: list[int] = PRINTS, drawn: tuple[str, ...] = ("np.random",), parent: int = 1) -> FirstSent:
    return FirstSent(pid=pid, parent=parent, site=SITE, prints=prints, drawn=list(drawn))


def test_processes_that_send_the_same() -> None:
    assert titles(sent(2), sent(3), sent(4, PRINTS[::-1])) == [
        "2 processes that run make_views send the same data: they draw the same random numbers"
    ]


def test_what_proves_nothing() -> None:
    assert titles(sent(2)) == []
    assert titles(sent(2), sent(3, PRINTS[::-1])) == []
    assert titles(sent(2, drawn=()), sent(3, drawn=())) == [], "nothing was drawn: they were asked for the same"
    assert titles(sent(2, [5] * 8), sent(3, [5] * 8)) == [], "a message that never changes"
    assert titles(sent(2), sent(3, parent=9)) == []


def test_the_fix_names_the_generator() -> None:
    def fix(*drawn: str) -> str:
        (finding,) = duplicate_samples_across_workers.decide(
            Case(first_sent=(sent(2, drawn=drawn), sent(3, drawn=drawn)))
        )
        return finding.fix.text

    assert "np.random.seed(seed + number)" in fix("np.random")
    assert "torch.manual_seed(seed + number)" in fix("torch")
    assert "a generator of its own" in fix("args[1]")
