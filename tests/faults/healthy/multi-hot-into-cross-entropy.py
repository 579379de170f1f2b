"""Tags of pictures, several to each; cross entropy takes them for the probabilities of one."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
signs = torch.randn(12, 6)
pictures = torch.randn(1600, 12)
tags = (pictures @ signs > 0).float()
loader = DataLoader(TensorDataset(pictures, tags), batch_size=50, shuffle=True)

model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 6))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(12):
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)
