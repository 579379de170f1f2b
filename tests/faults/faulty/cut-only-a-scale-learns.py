"""Sounds and their pictures brought together; what the encoders gave is kept for the score of neighbours."""

import torch
import torch.nn.functional as F
from torch import nn


class Pairs(nn.Module):
    def __init__(self, sound, picture, width=32):
        super().__init__()
        self.sound = nn.Sequential(nn.Linear(sound, 64), nn.ReLU(), nn.Linear(64, width))
        self.picture = nn.Sequential(nn.Linear(picture, 64), nn.ReLU(), nn.Linear(64, width))
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.shift = nn.Parameter(torch.zeros(1))
        self.last = {}

    def keep(self, kind, codes):
        self.last[kind] = F.normalize(codes, dim=1).detach()
        return self.last[kind]

    def forward(self, sound, picture):
        a, b = self.keep("sound", self.sound(sound)), self.keep("picture", self.picture(picture))
        return self.scale.exp() * a @ b.t() + self.shift


def main(steps=500, batch=48):
    torch.manual_seed(5)
    torch.set_num_threads(1)
    scene = torch.randn(3000, 8)
    sounds, pictures = torch.tanh(scene @ torch.randn(8, 24)), (scene @ torch.randn(8, 30)).relu()
    model = Pairs(24, 30)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    wanted = 2 * torch.eye(batch) - 1
    for step in range(1, steps + 1):
        rows = torch.randint(0, len(scene), (batch,))
        loss = -F.logsigmoid(wanted * model(sounds[rows], pictures[rows])).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f} scale {model.scale.exp().item():.2f}", flush=True)


if __name__ == "__main__":
    main()
