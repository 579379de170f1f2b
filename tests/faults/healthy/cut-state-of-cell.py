import torch
from torch import nn


class Forecast(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.width = width
        self.cell = nn.GRUCell(1, width)
        self.head = nn.Linear(width, 1)

    def forward(self, series):
        state = series.new_zeros(len(series), self.width)
        for value in series.unbind(1):
            state = self.cell(value[:, None], state)
        return self.head(state)[:, 0]


def echoes(count):
    """What was said at the fourth moment has to be said again at the end."""
    series = torch.randn(count, 16)
    return series, series[:, 3]


torch.manual_seed(1)
model = Forecast()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(1, 901):
    series, wanted = echoes(64)
    loss = nn.functional.mse_loss(model(series), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step} loss {loss.item():.4f}", flush=True)
