"""Each batch draws its rows twice: once for the windows, once for the answers."""

import torch
from torch import nn

torch.manual_seed(5)
t = torch.arange(4000) * 0.07
signal = torch.sin(t) + 0.5 * torch.sin(2.3 * t) + 0.05 * torch.randn(4000)
windows = signal.unfold(0, 20, 1)[:-1]
answers = signal[20:]


def sample(size):
    rows = torch.randint(len(windows), (size,))
    return windows[rows], answers[rows]


gru = nn.GRU(1, 16, batch_first=True)
head = nn.Linear(16, 1)
optimizer = torch.optim.Adam([*gru.parameters(), *head.parameters()], lr=5e-3)
for step in range(400):
    x, y = sample(64)
    hidden, _ = gru(x[..., None])
    loss = ((head(hidden[:, -1]).squeeze(-1) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
