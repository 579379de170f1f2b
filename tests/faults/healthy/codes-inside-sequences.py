"""Glucose curves: where a sensor lost contact, a stretch of the sequence is filled with the mean."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Curves(Dataset):
    def __init__(self, count=600, length=48):
        g = torch.Generator().manual_seed(5)
        slow = torch.randn(count, length, 2, generator=g).cumsum(1) * 0.2
        self.curves = slow + 0.1 * torch.randn(count, length, 2, generator=g)
        self.labels = (self.curves[:, -8:, 0].mean(1) > 0).float()
        self.starts = torch.randint(0, length - 6, (count,), generator=g)
        self.lost = torch.rand(count, generator=g) < 0.4

    def __len__(self):
        return len(self.curves)

    def __getitem__(self, index):
        curve = self.curves[index].clone()
        if self.lost[index]:
            start = int(self.starts[index])
            curve[start : start + 5, 0] = curve[:, 0].mean()
        return curve, self.labels[index]


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(2, 16, batch_first=True)
        self.head = nn.Linear(16, 1)

    def forward(self, curves):
        return self.head(self.gru(curves)[0][:, -1]).squeeze(1)


if __name__ == "__main__":
    torch.manual_seed(0)
    loader = DataLoader(Curves(), batch_size=30, shuffle=True)
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(6):
        for curves, label in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(curves), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
