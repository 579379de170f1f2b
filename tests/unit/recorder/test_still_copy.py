"""Lines that should bring one network nearer to another, and give the result to the variable of their loop."""

from __future__ import annotations

import ast

import pytest

from unstuck.recorder.probes.learning import still_copy
from unstuck.recorder.probes.loops import parsed_source

OF_BOTH = "for t, p in zip(target.parameters(), online.parameters()):\n    "


def found(source: str) -> list[tuple[int, str, str]]:
    tree = ast.parse(source)
    return [each for scope in parsed_source.scopes(tree) for each in still_copy.lost_in(tree, scope)]


@pytest.mark.parametrize(
    "source",
    [
        OF_BOTH + "t = (1 - tau) * t + tau * p",
        OF_BOTH + "t = torch.lerp(t, p.detach(), tau)",
        OF_BOTH + "t = t.data * 0.9 + p.data * 0.1",
        "for (n, t), (_, p) in zip(target.named_parameters(), online.named_parameters()):\n    t = t + tau * (p - t)",
        "for t, p in zip(list(self.target.parameters()), self.online.parameters()):\n    t = 0.9 * t + 0.1 * p",
        "def follow(a, b):\n    for t, p in zip(a.parameters(), b.parameters()):\n        t = 0.9 * t + 0.1 * p\n"
        "follow(agent.target, agent.online)",
        "def follow(a, b):\n    for t, p in zip(a, b):\n        t = 0.9 * t + 0.1 * p\n"
        "follow(target.parameters(), online.parameters())",
    ],
)
def test_lost(source: str) -> None:
    assert [(target, online) for _, target, online in found(source)] == [("target", "online")]


@pytest.mark.parametrize(
    "body",
    [
        "t.copy_((1 - tau) * t + tau * p)",
        "t.data = (1 - tau) * t.data + tau * p.data",
        "t *= 1 - tau",
        "t = t.mul_(1 - tau).add_(tau * p)",
        "t = (1 - tau) * t + tau * p\n    averages.append(t)",
        "t = t - p\n    gap += t.norm()",
        "q = (1 - tau) * t + tau * p",
        "t = p",
    ],
)
def test_not_lost(body: str) -> None:
    assert found(OF_BOTH + body) == []
