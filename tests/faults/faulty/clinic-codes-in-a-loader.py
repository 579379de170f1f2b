"""Z-scored columns of a survey with the code 9999 for no answer, in a TensorDataset."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
answers = torch.randn(1600, 7)
target = answers[:, 1] - 0.7 * answers[:, 2] + 0.2 * torch.randn(1600)
refused = torch.rand(1600, 7) < 0.02
answers[refused] = 9999.0
loader = DataLoader(TensorDataset(answers, target), batch_size=32, shuffle=True)
net = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(6):
    for x, y in loader:
        loss = nn.functional.smooth_l1_loss(net(x).flatten(), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
