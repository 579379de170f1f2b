"""Which remedy lets a run go on in spite of what a rule found, as lines to paste; docs/heal.md says what each does.

One table for all rules: `Rule.finding` looks it up, and the report shows it beneath the fix. The fix ends the cause; a
remedy bears it.
"""

from __future__ import annotations

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
