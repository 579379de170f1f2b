"""Updates that are computed and reach no weight, as they are found in the source."""

from __future__ import annotations

import ast

import pytest

from unstuck.recorder.probes.learning import lost_update
from unstuck.recorder.probes.loops import parsed_source

LOOP = """
for step in range(9):
    loss = model(x)
    loss.backward()
    grads = torch.autograd.grad(loss, params)
    with torch.no_grad():
"""


def found(body: str, function: str = "") -> list[tuple[int, str]]:
    tree = ast.parse(function + LOOP + "".join(f"        {line}\n" for line in body.strip().splitlines()))
    return [each for scope in parsed_source.scopes(tree) for each in lost_update.lost_in(tree, scope)]


@pytest.mark.parametrize(
    ("body", "how"),
    [
        ("for p, g in zip(params, grads):\n    p = p - lr * g", "rebound"),
        ("for p in params:\n    p = p.data - lr * p.grad\n    p.grad = None", "rebound"),
        ("for (name, p), g in zip(net.named_parameters(), grads):\n    p = torch.sub(p, g, alpha=lr)", "rebound"),
        ("for p, g in zip(params, grads):\n    d = 0.9 * g\n    p = p - lr * d", "rebound"),
        ("new = {name: p - lr * g for (name, p), g in zip(named, grads)}", "dropped"),
        ("for p, g in zip(params, grads):\n    p.sub(lr * g)", "dropped"),
        ("for p in params:\n    p.data - lr * p.grad", "dropped"),
        ("torch._foreach_sub(params, grads, alpha=lr)", "dropped"),
        ("for p, g in zip([q.clone() for q in params], grads):\n    p -= lr * g", "copy"),
        ("for p, g in zip(params, grads):\n    p.detach().clone().sub_(lr * g)", "copy"),
        ("for p, g in zip(params, grads):\n    new = p.clone()\n    new -= lr * g", "copy"),
        ("other = copy.deepcopy(net)\nfor p, g in zip(other.parameters(), grads):\n    p.sub_(lr * g)", "copy"),
    ],
)
def test_lost(body: str, how: str) -> None:
    ((_, found_how),) = found(body)
    assert found_how == how


@pytest.mark.parametrize(
    "body",
    [
        "for p, g in zip(params, grads):\n    p -= lr * g",
        "for p, g in zip(params, grads):\n    p.sub_(lr * g)",
        "for p, g in zip(params, grads):\n    p.data = p.data - lr * g",
        "for p, g in zip(params, grads):\n    p.copy_(p - lr * g)",
        "for p, g in zip(params, grads):\n    new = p - lr * g\n    p.copy_(new)",
        "for k, g in enumerate(grads):\n    params[k] = params[k] - lr * g",
        "fast = [p - lr * g for p, g in zip(params, grads)]\nquery(fast, x)",
        "fast = {k: v.clone() for k, v in named}\nfor k, g in zip(fast, grads):\n    fast[k] -= g\ncall(net, fast)",
        "params = [p - lr * g for p, g in zip(params, grads)]",
        "news.append(params[0] - lr * grads[0])",
        "gap = numeric - params[0].grad",
        "for kept, g in zip(fisher, grads):\n    kept += g.pow(2)",
        "norm = sum(g.norm() for g in grads)\nleft = budget - 2 * norm",
    ],
)
def test_not_lost(body: str) -> None:
    assert found(body) == []


DESCENDED = """
def descended(weights, given):
    moved = [p - lr * g for p, g in zip(weights, given)]
    return [p.requires_grad_() for p in moved]
"""


def test_what_a_function_returns() -> None:
    assert found("descended(params, grads)", DESCENDED)
    assert not found("params = descended(params, grads)", DESCENDED)
    assert not found("fast = descended(params, grads)\ndescended(fast, grads)", DESCENDED)
