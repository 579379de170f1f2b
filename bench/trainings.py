"""Trainings to measure on: a small MLP, a CNN and a transformer, with steps of some ten milliseconds on one core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


def mlp() -> tuple[nn.Module, Any, Any]:
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return model, torch.randn(512, 256), torch.randint(0, 10, (512,))


def cnn() -> tuple[nn.Module, Any, Any]:
    def block(before: int, after: int) -> list[nn.Module]:
        return [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]

    model = nn.Sequential(*block(3, 16), *block(16, 32), *block(32, 64), nn.Flatten(), nn.Linear(1024, 10))
    return model, torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,))


class Transformer(nn.Module):  # type: ignore[misc]  # mypy does not follow torch
    """Two and a half million parameters as it stands; more where `width` and `layers` say so."""

    def __init__(self, words: int = 2000, width: int = 192, layers: int = 4) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, words)

    def forward(self, words: Any) -> Any:
        return self.head(self.body(self.embed(words)))


def transformer() -> tuple[nn.Module, Any, Any]:
    words = torch.randint(0, 2000, (2, 17))
    return Transformer(), words[:, :-1], words[:, 1:].reshape(-1)


def transformer_on_gpu() -> tuple[nn.Module, Any, Any]:
    """A hundred million parameters, as they are trained: in bfloat16 by autocast."""
    words = torch.randint(0, 16000, (64, 513), device="cuda")
    return Transformer(16000, 768, 12).to("cuda"), words[:, :-1], words[:, 1:].reshape(-1)


KINDS = {"mlp": mlp, "cnn": cnn, "transformer": transformer, "transformer on a GPU": transformer_on_gpu}


def steps(kind: str) -> tuple[nn.Module, Iterator[None]]:
    """The model, and an endless training of it; each `next` is a step."""
    torch.manual_seed(0)
    model, x, y = KINDS[kind]()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def train() -> Iterator[None]:
        while True:
            opt.zero_grad()
            with torch.autocast(x.device.type, torch.bfloat16, enabled=x.is_cuda):
                loss = F.cross_entropy(model(x).reshape(len(y), -1), y)
            loss.backward()
            opt.step()
            yield

    return model, train()
