"""Which remedy lets a run go on in spite of what a rule found, as lines to paste; docs/heal.md says what each does.

One table for all rules: `Rule.finding` looks it up, and the report shows it beneath the fix. The fix ends the cause; a
remedy bears it.
"""

from __future__ import annotations

from unstuck.model import Where


def _loader(why: str, settings: str) -> str:
    return f" # {why}\n-loader = DataLoader(dataset, …)\n+loader = unstuck.DataLoader(dataset, …, {settings})"


SKIP = _loader("or train on without such samples:", 'on_bad_sample="skip"')
TIMEOUT = _loader("or give up samples that take too long, and train on:", 'sample_timeout=60, on_bad_sample="skip"')
GUARD = (
    " # or leave such steps out and train on:\n"
    " optimizer = …\n"
    "+unstuck.guard(optimizer)  # skips NaN, scales down what is out of proportion"
)
BOUNDED = " # or let every pass end:\n-for batch in loader:\n+for batch in unstuck.bounded(loader, max_batches=1000):"
PLATEAU = (
    " # or stop when the loss no longer improves:\n"
    "+plateau = unstuck.Plateau(optimizer, stop_after=15)\n"
    " for epoch in range(1000):\n"
    "     …\n"
    "+    if plateau.end_epoch(mean_loss): break"
)

REMEDIES: dict[str, str] = {
    "nonfinite-born": GUARD,
    "nonfinite-input": GUARD,
    "exploding-gradient": GUARD,
    "loss-spike": GUARD,
    "endless-epoch": BOUNDED,
    "stop-condition-never-met": PLATEAU,
}
IN_LOADER: dict[str, str] = {
    "sample-raises": SKIP,
    "native-crash": SKIP,
    "out-of-memory-kill": SKIP,
    "ended-from-outside": SKIP,
    "sample-spins": TIMEOUT,
    "sample-retries": TIMEOUT,
    "waits-on-io": TIMEOUT,
}
"""Where it happens to a sample, or in a worker."""


def remedy_for(rule: str, where: Where) -> str | None:
    in_loader = where.worker is not None or where.sample is not None
    return REMEDIES.get(rule) or (IN_LOADER.get(rule) if in_loader else None)
