"""category-as-number, on Cases made by hand."""

from __future__ import annotations

import torch

from tests.unit.rules.data.tables import about, findings, normal


def test_codes_of_a_category_and_numbers_in_order() -> None:
    g = torch.Generator().manual_seed(2)
    x = normal(1500)
    x[:, 0] = torch.randint(0, 10, (1500,), generator=g)
    odd = (x[:, 0] % 2).long()
    assert findings(about(x, odd))["category-as-number"].severity == "info"
    assert findings(about(x, (x[:, 0] > 4).long())) == {}, "a quantity"
    assert findings(about(x, torch.randint(0, 3, (1500,), generator=g))) == {}, "labels that nothing explains"
    assert "category-as-number" in findings(about(x, odd * 2.0 + 0.1 * normal(1500, 1)[:, 0]))
