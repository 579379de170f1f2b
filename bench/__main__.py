"""`python -m bench`: measures what unstuck costs and holds it against what it may cost.

Paired, interleaved blocks; intervals are 95 % bootstrap intervals of the mean difference.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from bench import attach, heal_loader, processes, scan, slowdown, step_cost, syncs, tuning
from bench.stats import Interval


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "what",
        nargs="?",
        choices=("all", "run", "attach", "learning", "scan", "tune", "heal", "gpu"),
        default="all",
        help="default: all",
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the pairs: for a first look")
    args = parser.parse_args()
    scale = 0.1 if args.quick else 1.0
    over = []
    print("| what | measured (95 % interval) | may cost |\n|---|---|---|", flush=True)
    for what, measured, limit, good in _rows(args.what, scale):
        print(f"| {what} | {measured} | {limit} |", flush=True)
        if not good:
            over.append(what)
    if over:
        print(f"over the limit: {', '.join(over)}", file=sys.stderr)
    return 1 if over else 0


Row = tuple[str, str, str, bool]
GPU = "transformer on a GPU"


def _rows(what: str, scale: float) -> Iterator[Row]:
    """One after the other, as they are measured."""
    if what in ("all", "run"):
        yield from _run(scale)
    if what in ("all", "attach"):
        yield from _attach(scale)
    if what in ("all", "learning"):
        yield from _learning(("mlp", "cnn", "transformer"), 240, scale, 0.02)
    if what in ("all", "scan"):
        yield from _scan(scale)
    if what in ("all", "tune"):
        yield from _tune(scale)
    if what in ("all", "heal"):
        yield from _heal(scale)
    if what == "gpu":
        yield _syncs()
        yield from _learning((GPU,), 60, scale, 0.005)


def _run(scale: float) -> Iterator[Row]:
    always, whole, step = step_cost.per_step(max(4, int(24 * scale)))
    yield _row(f"cost of an ordinary step, at steps of {step * 1e3:.2f} ms", always, 1e6, "µs", 8)
    yield _row("the same with the sampled steps, one in 256 where steps are short", whole, 1e6, "µs", 15)
    for milliseconds, limit in ((1, 0.02), (3, 0.01), (10, 0.005)):
        more, step = step_cost.ratio(max(4, int(12 * scale)), milliseconds)
        measured = f"× {1 + more.mean:.4f} ({1 + more.low:.4f}–{1 + more.high:.4f})"
        yield f"steps of {step * 1e3:.1f} ms, sampled ones included", measured, f"≤ × {1 + limit:g}", more.high <= limit
    batch = step_cost.per_batch(max(4, int(12 * scale)))
    yield _row("noting the samples of a batch of 32, where it is fetched", batch, 1e6, "µs", 10)
    start = processes.start_up(int(60 * scale))
    yield _row("start-up and end added to `python train.py`, CPU", start, 1e3, "ms", 60)
    yield _row("`unstuck --help`, CPU", processes.help_page(int(40 * scale)), 1e3, "ms", 100)
    memory, share = processes.supervisor(60 * scale)
    yield "supervisor's memory, peak", f"{memory:.1f} MB", "≤ 60 MB", memory <= 60
    yield "supervisor's CPU beside a healthy run", f"{share:.2%} of a core", "≤ 0.50 %", share <= 0.005


def _learning(kinds: tuple[str, ...], pairs: int, scale: float, limit: float) -> Iterator[Row]:
    """The upper end of the interval counts; other tools stand beside it for comparison."""
    for kind in kinds:
        for tool, (share, step) in slowdown.ratios(kind, max(4, int(pairs * scale))):
            what = f"{kind}, steps of {step * 1e3:.0f} ms, with {tool}"
            measured = f"× {1 + share.mean:.3f} ({1 + share.low:.3f}–{1 + share.high:.3f})"
            ours = tool == "unstuck"
            yield what, measured, f"≤ × {1 + limit:g}" if ours else "", not ours or share.high <= limit


def _scan(scale: float) -> Iterator[Row]:
    for name, more, seconds in scan.ratios(max(4, int(20 * scale))):
        what = f"`unstuck.scan`, {name}, compared with a plain pass of {seconds:.1f} s with {scan.WORKERS} workers"
        measured = f"× {1 + more.mean:.2f} ({1 + more.low:.2f}–{1 + more.high:.2f})"
        yield what, measured, "≤ × 1.2", more.mean <= 0.2


def _tune(scale: float) -> Iterator[Row]:
    """The mean counts; where the choice is the grid's best there is nothing to compare."""
    for name, chosen, best, ratio, took, grid in tuning.compare(scale):
        what = f"tune, {name}: samples/s of its choice ({chosen}) to the grid's best ({best})"
        measured = f"× {ratio.mean:.3f} ({ratio.low:.3f}–{ratio.high:.3f})" if ratio.pairs else "the same"
        yield what, measured, "≥ × 0.95", ratio.mean >= 0.95
        share = took / grid
        yield (
            f"tune, {name}: its time to the grid's",
            f"{took:.1f} s to {grid:.1f} s: {share:.0%}",
            "≤ 25 %",
            share <= 0.25,
        )


def _heal(scale: float) -> Iterator[Row]:
    """The lower end of the interval counts."""
    for name, loader, ratio, rate, busy in heal_loader.ratios(max(4, int(20 * scale))):
        what = f"{name}: batches/s with {loader}'s DataLoader, compared with torch's ({rate:.0f}), others at {busy:.0%}"
        measured = f"× {1 + ratio.mean:.3f} ({1 + ratio.low:.3f}–{1 + ratio.high:.3f})"
        ours = loader == "unstuck"
        yield what, measured, "≥ × 0.97" if ours else "", not ours or ratio.low >= -0.03
    longer, start = heal_loader.recovery(max(4, int(12 * scale)))
    yield _row(
        f"an epoch in which a worker is killed (its start: {start * 1e3:.0f} ms), longer by", longer, 1, "s", 0.5
    )


def _syncs() -> Row:
    plain, watched = syncs.counts(GPU)
    told = "; ".join(f"{name} {plain[name]} and {watched[name]}" for name in syncs.WAITS)
    what = f"{GPU}: calls that wait for it in {syncs.STEPS} steps, without and with unstuck"
    return what, told, "no more", all(watched[name] <= plain[name] for name in syncs.WAITS)


def _attach(scale: float) -> list[Row]:
    whole, looks, dumps = attach.cause(max(5, int(20 * scale)))
    slowest, typical, worst, usual = attach.delay(max(4, int(16 * scale)))
    ratio = looks.mean / dumps.mean
    return [
        _row("`attach`, command to printed cause, 1 + 8 processes", whole, 1, "s", 1.5),
        (
            "its looks beside `py-spy dump` called nine times",
            f"{looks.mean:.3f} s to {dumps.mean:.3f} s: {ratio:.2f}×",
            "≤ 3×",
            ratio <= 3,
        ),
        _row(
            f"slowest step (else {worst * 1e3:.0f} ms) of a training looked at for 3 s, longer by",
            slowest,
            1e3,
            "ms",
            20,
        ),
        _row(f"median step (else {usual * 1e3:.1f} ms) meanwhile, longer by", typical, 1e3, "ms", 20),
    ]


def _row(what: str, found: Interval, unit: float, name: str, limit: float) -> Row:
    text = f"{found.mean * unit:.2f} {name} ({found.low * unit:.2f} – {found.high * unit:.2f})"
    return what, text, f"≤ {limit:g} {name}", found.high * unit <= limit


if __name__ == "__main__":
    sys.exit(main())
