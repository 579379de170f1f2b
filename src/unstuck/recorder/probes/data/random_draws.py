"""Calls that draw numbers at random, as far as their names and arguments show it."""

from __future__ import annotations

import ast

from ..loops.parsed_source import called

DRAWS = frozenset(
    ("rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "random", "standard_normal", "integers",
     "randrange", "random_sample", "normal", "uniform", "bernoulli", "binomial", "choice", "choices", "gauss")
)  # fmt: skip
OF_VALUES = frozenset(("normal", "uniform", "bernoulli", "binomial", "choice", "choices", "gauss"))
"""Draws whose first argument may be data, and the draw say something about it."""
NOISE = frozenset(("randn", "randn_like", "rand_like", "standard_normal", "normal"))
FILLS = frozenset(("random_", "uniform_", "normal_", "bernoulli_"))  # a tensor that was just made
NOT_ALONE = frozenset(("normal", "uniform", "random", "choice", "choices", "binomial", "integers"))  # without a module


def draws(call: ast.Call) -> bool:
    name = called(call)
    if name in FILLS:
        return isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call)
    if name not in DRAWS or (name in NOT_ALONE and isinstance(call.func, ast.Name)):
        return False
    return name not in OF_VALUES or not call.args or is_constant(call.args[0])


def is_constant(node: ast.AST) -> bool:
    return not any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(node))
