"""The numbers broke: the rules of the family `numerics`, in causal order."""

from __future__ import annotations

from unstuck.rules.numerics import (
    all_labels_ignored,
    clip_before_unscale,
    dead_units,
    exploding_gradient,
    loss_scale_collapsed,
    loss_spike,
    nonfinite_born,
    nonfinite_input,
    saturated_units,
    symmetric_weights,
    vanishing_gradient,
)
from unstuck.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    nonfinite_input.RULE,
    all_labels_ignored.RULE,
    exploding_gradient.RULE,
    nonfinite_born.RULE,
    clip_before_unscale.RULE,
    loss_scale_collapsed.RULE,
    symmetric_weights.RULE,
    dead_units.RULE,
    saturated_units.RULE,
    vanishing_gradient.RULE,
    loss_spike.RULE,
)
