"""Healthy twin: weights start at the size that tanh keeps."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Deep(nn.Module):
    def __init__(self, inputs=16, width=48, depth=12):
        super().__init__()
        sizes = [inputs] + [width] * depth
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:], strict=False))
        self.out = nn.Linear(width, 2)
        self.apply(self.start)

    @staticmethod
    def start(module):
        if isinstance(module, nn.Linear):
            nn.init.xavier_normal_(module.weight, gain=nn.init.calculate_gain("tanh"))
            nn.init.zeros_(module.bias)

    def forward(self, x):
        for layer in self.hidden:
            x = torch.tanh(layer(x))
        return self.out(x)


def main():
    torch.manual_seed(0)
    x = torch.randn(1600, 16)
    y = (x[:, :4].sum(1) > 0.5).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
    model = Deep()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(10):
        hits = 0
        for features, labels in loader:
            scores = model(features)
            loss = nn.functional.cross_entropy(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits += int((scores.argmax(1) == labels).sum())
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {hits / len(x):.3f}", flush=True)


if __name__ == "__main__":
    main()
