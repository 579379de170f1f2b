"""eval-mode-while-training: the optimizer steps while the model is in eval mode.

What it sees
    Steps whose forward pass ran with dropout switched off and batch norm using its stored statistics, because the whole
    model was in eval mode: after a validation that did not put it back, or from the start.

Why training stops
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
from typing import Any

from unstuck.model import Case, Finding, Fix
from unstuck.rules.learning.measured import Learning, learnings
from unstuck.rules.learning.ownership import line, listed
from unstuck.rules.rule import Rule

LATE = 3
"""Observed steps in a row, up to now, in which everything was in eval mode."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in learnings(case):
        for name, history in (learning.forward.get("modes") or {}).items():
            since = _since(history)
            if since is None:
                continue
            before, late = history[:since], history[since:]
            never = bool(late[-1][4])
            frozen = late[-1][6]
            if not before and not never and (frozen or _norms_only(late)):
                continue  # a model that was trained before, with its norms held still
            yield _finding(learning, name, before, late, never)


def _since(history: list[list[Any]]) -> int | None:
    """Place in the history from which on the model as a whole was in eval mode; None: it is not."""
    place = len(history)
    while place and not history[place - 1][1] and history[place - 1][2] == history[place - 1][3]:
        place -= 1
    if len(history) - place < LATE:
        return None
    earlier = history[:place]
    return None if any(not seen[1] for seen in earlier) and len(earlier) > len(history) - place else place


def _norms_only(late: list[list[Any]]) -> bool:
    return all("Norm" in kind for kind in late[-1][5])


def _finding(learning: Learning, name: str, before: list[Any], late: list[Any], never: bool) -> Finding:
    kinds = listed(late[-1][5])
    first = late[0][0]
    loss = learning.loss
    site = loss.site if loss is not None else None
    evidence = [
        f"at {len(late)} of {len(late)} steps looked at from step {first:,} on, `{name}` was in eval mode, with "
        f"{late[-1][3]} modules that behave otherwise then ({kinds})",
    ]
    if before:
        evidence.append(
            f"it was in training mode up to step {before[-1][0]:,}: something put it into eval mode between"
        )
    elif never:
        evidence.append("the statistics of its batch norms were never updated: it does not normalize at all")
    return Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="error" if before or never else "warning",
        confidence=0.93 if before or never else 0.7,
        title=f"`{name}` is trained in eval mode" + (f" since about step {first:,}" if before else ""),
        evidence=tuple(evidence),
        where=learning.where((None if before else _evaluated(learning)) or site, step=first),
        fix=Fix(
            f"Call `{name.partition('.')[0]}.train()` before the batches of each epoch are trained ({line(site)})."
        ),
        seen_by="flight",
    )


def _evaluated(learning: Learning) -> tuple[str, int, str] | None:
    site = learning.forward.get("eval_site")
    return (site[0], site[1], site[2]) if site else None


RULE = Rule("eval-mode-while-training", "learning", decide, gathers=True)
