"""Rules about who owns, reaches, clears and steps parameters, on Cases made by hand: where they speak."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import pytest

from unstuck.model import Case, Finding, Outcome
from unstuck.recorder.records.learning import (
    Activation,
    BuiltOptimizer,
    FlatOperation,
    GraphCut,
    KeptInList,
    Learning,
    Loss,
    Mode,
    Parameter,
)
from unstuck.recorder.records.numerics import Scaler
from unstuck.rules.learning import (
    eval_mode_while_training,
    frozen_parameters,
    gradients_never_cleared,
    graph_cut,
    optimizer_never_steps,
    parameters_not_in_optimizer,
)
from unstuck.rules.numerics import dead_units, saturated_units, symmetric_weights
from unstuck.rules.rule import Rule

PID = 7
SITE = ("train.py", 30, "main")
BUILT_AT = ("train.py", 20, "main")


def parameter(name: str = "model.fc.weight", shape: tuple[int, ...] = (8, 8), **more: Any) -> Parameter:
    """One that an optimizer has, that gets gradients and moves."""
    plain: dict[str, Any] = {"name": name, "module": "Linear", "shape": list(shape), "numel": prod(shape), "owner": 0}
    plain |= {"grads": [(n, 0.1) for n in range(40)], "weights": [1.0] * 40, "moves": [(n, 0.01) for n in range(40)]}
    return Parameter(**{**plain, "seen": 40, "in_graph": 40, "held": 0, "called": 3, **more})


def built(**more: Any) -> BuiltOptimizer:
    known: dict[str, Any] = {"kind": "Adam", "site": BUILT_AT, "steps": 300, "clears": 300, "checked": 60}
    return BuiltOptimizer(**{**known, "parameters": 4, "trainable": 4, "in_graph": 4, "moved": 4, **more})


def activation(**more: Any) -> Activation:
    known: dict[str, Any] = {"place": 0, "kind": "relu", "name": "model.0", "shape": [32, 40], "batches": 80}
    return Activation(**{**known, "units": 40, "zero": 0.5, "late_batches": 45, **more})


def case(*parameters: Parameter, outcome: Outcome = "running", **more: Any) -> Case:
    loss = Loss(site=SITE, count=300, first=[1.0], points=[(0, 1.0)], last=1.0)
    plain: dict[str, Any] = {"steps": 300, "backwards": 300, "losses": [loss], "clears": 300, "built": [built()]}
    plain |= {"parameters": list(parameters) or [parameter()], "observed": 5}
    return Case(root=PID, learnings=(Learning(**{**plain, "pid": PID, **more}),), outcome=outcome)


def said(rule: Rule, on: Case) -> list[Finding]:
    return [word for word in rule.decide(on) if isinstance(word, Finding)]


RULES = [
    module.RULE
    for module in (
        dead_units,
        eval_mode_while_training,
        frozen_parameters,
        gradients_never_cleared,
        graph_cut,
        optimizer_never_steps,
        parameters_not_in_optimizer,
        saturated_units,
        symmetric_weights,
    )
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize("outcome", ["running", "finished"])
def test_a_training_that_learns_is_left_alone(rule: Rule, outcome: Outcome) -> None:
    assert not said(rule, case(parameter(), parameter("model.fc.bias", (8,)), outcome=outcome))


# --- gradients-never-cleared ---------------------------------------------------------------------------------


def test_gradients_never_cleared_names_the_backward_line() -> None:
    (finding,) = said(gradients_never_cleared.RULE, case(built=[built(stale=60, clears=0)]))
    assert (finding.severity, finding.where.line) == ("error", 30)
    assert "60 of 60" in finding.evidence[0]


def test_gradients_cleared_once_an_epoch() -> None:
    (finding,) = said(gradients_never_cleared.RULE, case(built=[built(stale=60, clears=5)]))
    assert "once in 60 steps" in finding.title


@pytest.mark.parametrize(
    "optimizer",
    [
        built(stale=30, clears=0),  # half of the time: two nets that share a backward pass
        built(stale=60, clears=300),
        built(stale=60, clears=0, kind="LBFGS"),
        built(stale=3, checked=3, clears=0),
    ],
)
def test_gradients_that_are_cleared_some_way(optimizer: BuiltOptimizer) -> None:
    assert not said(gradients_never_cleared.RULE, case(built=[optimizer]))


# --- optimizer-never-steps -----------------------------------------------------------------------------------


def still(**more: Any) -> Parameter:
    return parameter(owner=None, moved=False, **more)


def test_backward_without_a_step() -> None:
    (finding,) = said(optimizer_never_steps.RULE, case(still(), built=[built(steps=0, clears=300)]))
    assert finding.where.line == 30
    assert "0 steps of the Adam built at train.py:20" in finding.evidence[0]


@pytest.mark.parametrize(
    ("parameters", "more"),
    [
        ([parameter(owner=None)], {"built": [built(steps=0)]}),  # written by hand
        ([still()], {"built": [built(steps=0, clears=0)]}),  # may be accumulating
        ([still()], {"built": [built(steps=0)], "scaler": Scaler(updates=300)}),  # skipped by the scaler
        ([still()], {"built": [built(steps=0), built(number=1)]}),  # another one steps
    ],
)
def test_no_step_yet(parameters: list[Parameter], more: dict[str, Any]) -> None:
    assert not said(optimizer_never_steps.RULE, case(*parameters, **more))


def test_gradients_cleared_before_the_step() -> None:
    (finding,) = said(optimizer_never_steps.RULE, case(parameter(moved=False, none=40)))
    assert "gone when the optimizer steps" in finding.title


# --- parameters-not-in-optimizer -----------------------------------------------------------------------------


def unowned(name: str = "model.hidden[0].weight", **more: Any) -> Parameter:
    lost: dict[str, Any] = {"owner": None, "held": None, "moved": False, "seen": 0, "grads": [], "fresh": True}
    return parameter(name, **{**lost, **more})


def test_layers_in_a_list_are_told_with_the_line_of_the_list() -> None:
    kept = KeptInList(module="model.hidden[0]", holder="model", kind="MLP", attribute="hidden", container="list")
    plain_list = case(parameter(), unowned(), kept_in=[replace(kept, site=("net.py", 11, "MLP.__init__"))])
    (finding,) = said(parameters_not_in_optimizer.RULE, plain_list)
    assert (finding.severity, finding.where.file, finding.where.line) == ("error", "net.py", 11)
    assert "ModuleList" in finding.fix.text


def test_an_optimizer_of_another_model() -> None:
    (finding,) = said(parameters_not_in_optimizer.RULE, case(unowned(), built=[built(in_graph=0)]))
    assert finding.where.line == 20
    assert "another model" in finding.evidence[2]


@pytest.mark.parametrize(
    "lost",
    [
        unowned(fresh=False),  # trained or loaded before: a frozen body
        unowned(moved=True),  # moved by hand
        unowned(held=1),  # in an optimizer that has not stepped yet
        unowned(is_parameter=False),  # an input that wants a gradient
        unowned(in_graph=1),  # made anew each step
        unowned(trainable=False),
    ],
)
def test_left_out_for_a_reason(lost: Parameter) -> None:
    assert not said(parameters_not_in_optimizer.RULE, case(parameter(), lost, outcome="finished"))


def test_what_was_left_out_may_still_be_added() -> None:
    early = case(parameter(), unowned(), built=[built(steps=20)])
    assert not said(parameters_not_in_optimizer.RULE, early)
    assert said(parameters_not_in_optimizer.RULE, case(parameter(), unowned()))


# --- graph-cut -----------------------------------------------------------------------------------------------


def cut(**more: Any) -> GraphCut:
    about: dict[str, Any] = {"lost": ["model.encoder"], "parameters": 2, "begins": "model.encoder", "op": "detach"}
    where = {"ends": "model.decoder", "site": ("net.py", 16, "keep"), "proven": 2, "step": 9, "times": 1}
    return GraphCut(**{**about, **where, **more})


def unreached(**more: Any) -> Parameter:
    lost = {"in_graph": 0, "none": 40, "moved": False, "grads": [], "fresh": True}
    return parameter("model.encoder.weight", **{**lost, **more})


def test_a_cut_is_told_with_its_line_and_both_modules() -> None:
    (finding,) = said(graph_cut.RULE, case(parameter(), unreached(), cut=cut()))
    assert (finding.severity, finding.where.line) == ("error", 16)
    assert "between `model.encoder` and `model.decoder`" in finding.title


@pytest.mark.parametrize(
    ("lost", "ended"),
    [
        (unreached(fresh=False), cut()),  # trained before
        (unreached(called=0), cut()),  # an idle expert
        (unreached(), cut(training=False)),
        (unreached(), cut(proven=0)),
        (unreached(in_graph=3), cut()),  # another loss reaches it
        (unreached(trainable=False), cut()),
    ],
)
def test_not_cut_or_on_purpose(lost: Parameter, ended: GraphCut) -> None:
    assert not said(graph_cut.RULE, case(parameter(), lost, cut=ended))


def test_a_loss_that_is_a_leaf() -> None:
    (finding,) = said(graph_cut.RULE, case(unreached(), cut=cut(op="item", ends="the loss"), leaf_losses=50))
    assert "no graph" in finding.title


# --- frozen-parameters ---------------------------------------------------------------------------------------


def test_everything_frozen_but_a_norm() -> None:
    frozen = parameter("model.fc.weight", trainable=False, moved=False, fresh=True, in_graph=0)
    (finding,) = said(frozen_parameters.RULE, case(frozen, parameter("model.norm.weight", (8,))))
    assert "`model.norm` are left to train" in finding.title


def test_a_new_head_on_a_frozen_body_and_biases_of_a_trained_one() -> None:
    body = parameter("model.body.weight", trainable=False, moved=False, fresh=True, in_graph=0)
    assert not said(frozen_parameters.RULE, case(body, parameter("model.head.weight")))
    trained = parameter("model.body.weight", trainable=False, moved=False, fresh=False, in_graph=0)
    assert not said(frozen_parameters.RULE, case(trained, parameter("model.body.bias", (8,))))


# --- eval-mode-while-training --------------------------------------------------------------------------------


def modes(*seen: tuple[int, bool, int, int], never: int = 0, kinds: tuple[str, ...] = ("Dropout",)) -> list[Mode]:
    return [
        Mode(step=step, training=training, idle=idle, of=of, never_updated=never, kinds=list(kinds), outermost="Net")
        for step, training, idle, of in seen
    ]


def test_not_put_back_after_validation() -> None:
    history = modes((2, True, 0, 2), (5, True, 0, 2), (30, False, 2, 2), (60, False, 2, 2), (96, False, 2, 2))
    (finding,) = said(eval_mode_while_training.RULE, case(modes={"model": history}))
    assert finding.severity == "error"
    assert "up to step 5" in finding.evidence[1]


@pytest.mark.parametrize(
    "history",
    [
        modes(*[(step, True, 2, 2) for step in (2, 5, 12, 30)], kinds=("BatchNorm2d",)),  # norms held still
        modes(*[(step, False, 2, 2) for step in (2, 5, 12, 30)], kinds=("BatchNorm2d",)),  # of a trained model
        modes((2, False, 2, 2), (5, True, 0, 2), (12, False, 2, 2), (30, True, 0, 2)),  # in turns
        modes((2, True, 0, 2), (5, True, 0, 2), (12, False, 2, 2)),  # once
    ],
)
def test_eval_mode_on_purpose(history: list[Mode]) -> None:
    assert not said(eval_mode_while_training.RULE, case(modes={"model": history}))


# --- dead-units, saturated-units, symmetric-weights ----------------------------------------------------------


def test_dead_units_short_of_a_whole_layer_are_a_warning() -> None:
    (whole,) = said(dead_units.RULE, case(activations=[activation(late_dead=40)]))
    (most,) = said(dead_units.RULE, case(activations=[activation(late_dead=38)]))
    assert (whole.severity, most.severity) == ("error", "warning")
    assert not said(dead_units.RULE, case(activations=[activation(late_dead=30), activation(late_batches=10)]))


def test_a_narrow_layer_that_is_wholly_dead() -> None:
    narrow = activation(units=2, late_dead=2, dead=2, late_batches=12, name="model.0")
    behind = parameter(name="model.0.weight", grads=[(n, 0.0) for n in range(40)])
    after = parameter(name="model.2.weight", grads=[(n, 0.3) for n in range(40)])
    (finding,) = said(dead_units.RULE, case(behind, after, activations=[narrow]))
    assert finding.severity == "error"
    assert "negative bias" in finding.fix.text
    still = replace(after, grads=[(n, 0.0) for n in range(40)])
    assert not said(dead_units.RULE, case(behind, still, activations=[narrow])), "a hinge that is met everywhere"
    assert not said(dead_units.RULE, case(behind, after, activations=[replace(narrow, late_dead=1)]))


def test_an_operation_without_a_slope() -> None:
    flat = FlatOperation(operation="sign", lost=["model.0.weight"], site=SITE)
    behind = parameter(name="model.0.weight", seen=40, zero=40)
    (finding,) = said(graph_cut.RULE, case(behind, flat=flat))
    assert "through `sign`" in finding.title
    assert finding.where.line == SITE[1]
    assert not said(graph_cut.RULE, case(replace(behind, zero=39), flat=flat))


def test_saturated_from_the_start_and_no_gate() -> None:
    flat: dict[str, Any] = {"kind": "tanh", "early_saturated": 0.8, "late_saturated": 0.8, "saturated": 0.8}
    assert said(saturated_units.RULE, case(activations=[activation(**flat)]))
    assert not said(saturated_units.RULE, case(activations=[activation(**flat, gated=True)]))
    assert not said(saturated_units.RULE, case(activations=[activation(**{**flat, "early_saturated": 0.1})]))


def test_rows_alike_that_stay_alike() -> None:
    (finding,) = said(symmetric_weights.RULE, case(parameter(alike="same", still_alike=True), first_weights=SITE))
    assert finding.where.line == 30
    assert not said(symmetric_weights.RULE, case(parameter(alike="zero", still_alike=False)))  # LoRA's second half
    assert not said(symmetric_weights.RULE, case(parameter(alike="same", still_alike=True, held=None)))
