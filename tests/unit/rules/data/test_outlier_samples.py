"""outlier-samples, on Cases made by hand."""

from __future__ import annotations

import torch

from tests.unit.rules.data.tables import about, findings, normal


def test_outliers_are_named_and_heavy_tails_are_not() -> None:
    x = normal()
    x[123, 2], x[700, 2] = 90.0, 400.0
    finding = findings(about(x))["outlier-samples"]
    assert finding.where.sample == 700
    assert "123" in finding.title
    g = torch.Generator().manual_seed(1)
    for tail in (
        (1 - torch.rand(2000, 4, generator=g)) ** (-1 / 1.5),
        torch.exp(1.5 * torch.randn(2000, 4, generator=g)),
        torch.randn(2000, 4, generator=g) / torch.randn(2000, 4, generator=g),
    ):
        assert "outlier-samples" not in findings(about(tail))
