"""Which gesture: a recurrent net over recordings of an accelerometer."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
SAMPLES, STEPS, AXES, GESTURES = 1200, 30, 3, 4
gesture = torch.randint(GESTURES, (SAMPLES,))
moment = torch.arange(STEPS)[None, :, None]
phase = 6.28 * torch.rand(SAMPLES, 1, AXES)
motion = torch.sin(6.28 * moment / (6 + 4 * gesture[:, None, None]) + phase) + 0.3 * torch.randn(SAMPLES, STEPS, AXES)


class GestureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(AXES, 24)
        self.memory = nn.GRU(24, 32)  # wants (time, batch, features)
        self.read = nn.Linear(32, GESTURES)

    def forward(self, motion):
        batch, steps, _ = motion.shape
        lifted = torch.relu(self.lift(motion))
        hidden, _ = self.memory(lifted.transpose(0, 1))
        return self.read(hidden[-1])


loader = DataLoader(TensorDataset(motion, gesture), batch_size=50, shuffle=True)
model = GestureNet()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(10):
    total = 0.0
    for motions, gestures in loader:
        loss = nn.functional.cross_entropy(model(motions), gestures)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch + 1}: loss {total / len(loader):.3f}", flush=True)
