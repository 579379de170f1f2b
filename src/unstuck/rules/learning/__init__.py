"""It moves and does not learn: the rules of the family `learning`, in causal order."""

from __future__ import annotations

from unstuck.rules.learning import (
    activation_applied_twice,
    clip_too_tight,
    eval_mode_while_training,
    frozen_parameters,
    gradients_never_cleared,
    graph_cut,
    learning_rate_too_high,
    learning_rate_too_low,
    loss_broadcasts,
    loss_oscillates,
    no_better_than_constant,
    optimizer_never_steps,
    output_range_excludes_targets,
    parameters_not_in_optimizer,
    predicts_one_class,
    scheduler_kills_learning_rate,
    softmax_over_wrong_dim,
    still_improving,
    target_scale,
    weight_decay_dominates,
    wrong_loss_for_target,
)
from unstuck.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    frozen_parameters.RULE,
    parameters_not_in_optimizer.RULE,
    optimizer_never_steps.RULE,
    graph_cut.RULE,
    gradients_never_cleared.RULE,
    softmax_over_wrong_dim.RULE,
    loss_broadcasts.RULE,
    wrong_loss_for_target.RULE,
    activation_applied_twice.RULE,
    output_range_excludes_targets.RULE,
    target_scale.RULE,
    scheduler_kills_learning_rate.RULE,
    learning_rate_too_high.RULE,
    weight_decay_dominates.RULE,
    clip_too_tight.RULE,
    loss_oscillates.RULE,
    learning_rate_too_low.RULE,
    eval_mode_while_training.RULE,
    predicts_one_class.RULE,
    no_better_than_constant.RULE,
    still_improving.RULE,
)
