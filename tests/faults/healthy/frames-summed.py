"""Which of four machines runs, from a minute of vibration, in blocks that average over its frames."""

import torch
from torch import nn

torch.manual_seed(11)
FRAMES, MACHINES = 300, 4


def recordings(count):
    machine = torch.randint(0, MACHINES, (count,))
    time = torch.arange(FRAMES) / 10
    hum = torch.sin(time[None, :] * (1 + 0.4 * machine[:, None]) + 6 * torch.rand(count, 1))
    return (hum + 0.5 * torch.randn(count, FRAMES))[..., None], machine


class Mixer(nn.Module):
    """Each frame gets what all frames agree on."""

    def __init__(self, width):
        super().__init__()
        self.local = nn.Conv1d(width, width, 9, padding=4)
        self.shared = nn.Linear(width, width)

    def forward(self, h):
        local = torch.relu(self.local(h.transpose(1, 2))).transpose(1, 2)
        return h + local + self.shared(local.mean(1, keepdim=True))


class Listener(nn.Module):
    def __init__(self, width=24, blocks=3):
        super().__init__()
        self.enter = nn.Linear(1, width)
        self.blocks = nn.Sequential(*[Mixer(width) for _ in range(blocks)])
        self.head = nn.Linear(width, MACHINES)

    def forward(self, x):
        return self.head(self.blocks(self.enter(x)).mean(1))


model = Listener()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
sound, machine = recordings(800)
for step in range(250):
    pick = torch.randint(0, 800, (16,))
    loss = nn.functional.cross_entropy(model(sound[pick]), machine[pick])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        print(f"step {step + 1}: loss {loss.item():.4f}", flush=True)
