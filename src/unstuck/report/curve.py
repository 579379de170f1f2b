"""The loss that a finding is about: which one, its points, and the steps to mark in its drawing."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from unstuck.families import NOT_LEARNING
from unstuck.model import Case, Finding
from unstuck.recorder.records import Site
from unstuck.recorder.records.learning import Learning, Loss
from unstuck.report.page import Page, Piece
from unstuck.report.plot import Mark, draw, is_log
from unstuck.text import count

MIN_POINTS = 8  # of fewer, a drawing shows no more than the evidence says


@dataclass(frozen=True)
class Curve:
    loss: Loss
    points: tuple[tuple[float, float], ...]
    step: int | None  # of the finding

    def same_as(self, other: Curve | None) -> bool:
        return other is not None and self.loss is other.loss


def curve_of(case: Case, finding: Finding) -> Curve | None:
    """None where the finding is not about learning, or too little was measured."""
    if finding.family not in NOT_LEARNING:
        return None
    measured = [learning for learning in case.learnings if learning.losses]
    learning = next((one for one in measured if one.pid == finding.where.pid), measured[0] if measured else None)
    if learning is None:
        return None
    loss = _loss(case, finding, learning)
    points = points_of(learning, loss)
    return Curve(loss, points, finding.where.step) if len(points) >= MIN_POINTS else None


def show(page: Page, curve: Curve) -> None:
    """Under a heading of its own: the line, the scale, the drawing."""
    last = max(curve.points[-1][0], curve.loss.nonfinite_step)
    marks = []
    if curve.step is not None and curve.step != curve.loss.nonfinite_step and curve.points[0][0] <= curve.step:
        marks.append(Mark(min(curve.step, round(last)), page.glyph("mark"), f"step {curve.step:,}"))
    if curve.loss.nonfinite_step >= 0:
        marks.append(Mark(curve.loss.nonfinite_step, page.glyph("error"), _broken(curve)))
    rows = draw(curve.points, marks, width=page.width - 4, unicode=page.screen.unicode)
    if not rows:
        return
    caption: list[Piece] = [("Loss", "bold")]
    if curve.loss.site:
        caption.append((f"{os.path.basename(curve.loss.site[0])}:{curve.loss.site[1]}", "dim"))
    caption += [("log scale", "dim")] if is_log([value for _, value in curve.points]) else []
    caption += [(f"means of {count(curve.loss.stride, 'value')}", "dim")] if curve.loss.stride > 1 else []
    page.blank()
    page.flow(caption, indent=2)
    for row in rows:
        page.cut((row.label + row.axis, "dim"), row.body, indent=4)


def _broken(curve: Curve) -> str:
    step, times = f"step {curve.loss.nonfinite_step:,}", curve.loss.nonfinite
    if curve.points[-1][0] <= curve.loss.nonfinite_step:
        return f"NaN/Inf from {step}"
    return f"NaN/Inf at {step}" if times <= 1 else f"NaN/Inf {times:,} times, first at {step}"


def _loss(case: Case, finding: Finding, learning: Learning) -> Loss:
    """The one of the finding's line or of the loss function there; else the one with most values."""
    spots = {(os.path.join(case.cwd, at.file or ""), at.line) for at in (finding.where, *finding.also)}
    named = {head.called for head in learning.heads if head.site and _spot(case, head.site) in spots}
    for loss in learning.losses:
        if loss.site and (_spot(case, loss.site) in spots or loss.site in named):
            return loss
    return max(learning.losses, key=lambda loss: loss.count + loss.nonfinite)


def _spot(case: Case, site: Site) -> tuple[str, int | None]:
    return os.path.join(case.cwd, site[0]), site[1]


def points_of(learning: Learning, loss: Loss) -> tuple[tuple[float, float], ...]:
    """Its means; and where these hide them, its first value, its last ones, and those that stood out."""
    points = [(float(step), value) for step, value in loss.points]
    if loss.stride > 1 and len(points) > 1:
        stretch = (points[-1][0] - points[0][0]) / (len(points) - 1)
        end, held = points[-1][0], loss.count - loss.stride * len(points)
        late = loss.recent[-held:] if held > 0 else []
        points += [(end + n * stretch / loss.stride, value) for n, value in enumerate(late, held - len(late) + 1)]
        points += [(max(0.0, points[0][0] - stretch), value) for value in loss.first[:1]]
        points += [(float(spike.step), spike.value) for spike in learning.spikes if spike.site == loss.site is not None]
    return tuple(sorted(point for point in points if math.isfinite(point[1])))
