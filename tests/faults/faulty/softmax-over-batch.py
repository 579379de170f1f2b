"""Digits from strokes; the log-softmax runs over the samples of the batch."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Strokes(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(20, 64)
        self.out = nn.Linear(64, 5)

    def forward(self, x):
        x = torch.relu(self.hidden(x))
        return F.log_softmax(self.out(x), dim=0)


def main():
    torch.manual_seed(1)
    y = torch.randint(0, 5, (1500,))
    x = torch.randn(5, 20)[y] + 0.7 * torch.randn(1500, 20)
    loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
    model = Strokes()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(10):
        for strokes, digit in loader:
            loss = F.nll_loss(model(strokes), digit)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
