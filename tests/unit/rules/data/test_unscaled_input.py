"""unscaled-input, on Cases made by hand."""

from __future__ import annotations

import pytest
import torch

from tests.unit.rules.data.tables import about, findings, given, normal


def test_unscaled_is_information_where_nothing_is_known_of_the_training() -> None:
    finding = findings(about(1000 + 80 * normal()))["unscaled-input"]
    assert finding.severity == "info"


def test_unscaled_is_silent_where_the_first_layer_normalizes() -> None:
    told = about(1000 + 80 * normal())
    scale = told.parts[0].scale
    assert findings(told, given=(given("BatchNorm1d", scale),)) == {}
    assert findings(told, given=(given("Linear", about(normal()).parts[0].scale),)) == {}
    assert list(findings(told, given=(given("Linear", scale),))) == ["unscaled-input"]


def test_numbers_next_to_nothing() -> None:
    told = about(1e-9 * normal())
    finding = findings(told, given=(given("Linear", told.parts[0].scale),))["unscaled-input"]
    assert "all values between" in finding.title
    assert "no value is beyond" in finding.evidence[0]
    assert findings(told, given=(given("Linear", about(normal()).parts[0].scale),)) == {}


@pytest.mark.parametrize("x", [0.01 * normal(), torch.eye(5)[torch.arange(1000) % 5], 1e-5 * normal().abs() + 1.0])
def test_small_numbers_that_a_layer_can_tell_apart(x: torch.Tensor) -> None:
    assert not any("all values between" in finding.title for finding in findings(about(x)).values())


def test_columns_of_different_size() -> None:
    x = normal()
    x[:, 0] *= 0.0001
    x[:, 1:4] *= 0.00001
    x[:, 4] *= 0.01
    assert "very different size" in findings(about(x))["unscaled-input"].title
