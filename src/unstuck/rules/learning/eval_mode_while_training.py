"""eval-mode-while-training: the optimizer steps while the model is in eval mode.

What it sees
    Steps whose forward pass ran with dropout switched off and batch norm using its stored statistics, because the whole
    model was in eval mode: after a validation that did not put it back, or from the start.

Why it matters
    Nothing stops. Dropout does nothing from then on, so the model overfits; batch norm neither normalizes by the batch
    nor updates what it will use later.

Evidence
    From which step on, which modules, and whether the model was in training mode before.

Fix
    `model.train()` at the beginning of each training epoch.

When it is wrong
    Batch norm that is kept in eval mode on purpose while the rest of the model trains is not reported, nor is a model
    that is in eval mode in some steps only, as in adversarial training.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Mode
from unstuck.rules.learning.measured import loss_site, where
from unstuck.rules.learning.ownership import line, listed
from unstuck.rules.rule import Rule

LATE = 3
"""Observed steps in a row, up to now, in which everything was in eval mode."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for name, history in learning.modes.items():
            since = _since(history)
            if since is None:
                continue
            before, late = history[:since], history[since:]
            now = late[-1]
            if not before and not now.never_updated and (now.frozen or _norms_only(now)):
                continue  # a model that was trained before, with its norms held still
            yield _finding(learning, name, before, late)


def _since(history: list[Mode]) -> int | None:
    """Index in the history from which on the model as a whole was in eval mode; None: it is not."""
    since = len(history)
    while since and not history[since - 1].training and history[since - 1].idle == history[since - 1].of:
        since -= 1
    if len(history) - since < LATE:
        return None
    earlier = history[:since]
    return None if any(not seen.training for seen in earlier) and len(earlier) > len(history) - since else since


def _norms_only(mode: Mode) -> bool:
    return all("Norm" in kind for kind in mode.kinds)


def _finding(learning: Learning, name: str, before: list[Mode], late: list[Mode]) -> Finding:
    first, now = late[0].step, late[-1]
    never = now.never_updated > 0
    site = loss_site(learning)
    evidence = [
        f"at {len(late)} of {len(late)} steps looked at from step {first:,} on, `{name}` was in eval mode, with "
        f"{now.of} modules that behave otherwise then ({listed(now.kinds)})",
    ]
    if before:
        evidence.append(
            f"it was in training mode up to step {before[-1].step:,}: something put it into eval mode between"
        )
    elif never:
        evidence.append("the statistics of its batch norms were never updated: it does not normalize at all")
    return RULE.finding(
        severity="error" if before or never else "warning",
        confidence=0.93 if before or never else 0.7,
        title=f"`{name}` is trained in eval mode" + (f" since about step {first:,}" if before else ""),
        evidence=tuple(evidence),
        where=where(learning, (None if before else learning.eval_site) or site, step=first),
        fix=Fix(
            f"Call `{name.partition('.')[0]}.train()` before the batches of each epoch are trained ({line(site)})."
        ),
        seen_by="flight",
    )


RULE = Rule("eval-mode-while-training", "learning", decide, gathers=True)
