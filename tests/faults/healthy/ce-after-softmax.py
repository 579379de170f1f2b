"""Flower kinds from four measurements; the model ends in a softmax, and cross entropy applies its own."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
kinds = torch.randint(0, 3, (900,))
centres = torch.randn(3, 4) * 2
flowers = centres[kinds] + 0.6 * torch.randn(900, 4)
loader = DataLoader(TensorDataset(flowers, kinds), batch_size=30, shuffle=True)

model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(12):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}", flush=True)
