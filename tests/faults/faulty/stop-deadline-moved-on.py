"""Character model trained until its share of the night is over, with a checkpoint every now and then."""

import io
import time

import torch
from torch import nn

TEXT = "the quick brown fox jumps over the lazy dog and runs back into the dark green wood. " * 40
SECONDS, EVERY, LENGTH = 4.0, 100, 24


class CharModel(nn.Module):
    def __init__(self, n, width=48):
        super().__init__()
        self.embed = nn.Embedding(n, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, n)

    def forward(self, x):
        return self.head(self.rnn(self.embed(x))[0])


class Night:
    def __init__(self, model):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), lr=3e-3)
        letters = sorted(set(TEXT))
        self.text = torch.tensor([letters.index(c) for c in TEXT])
        self.step = 0
        self.until = 0.0

    def batch(self):
        starts = torch.randint(len(self.text) - LENGTH - 1, (16,))
        rows = torch.stack([self.text[s : s + LENGTH + 1] for s in starts])
        return rows[:, :-1], rows[:, 1:]

    def save(self):
        file = io.BytesIO()
        torch.save(self.model.state_dict(), file)
        return len(file.getvalue())

    def run(self):
        self.until = time.monotonic() + SECONDS
        while time.monotonic() < self.until:
            x, y = self.batch()
            loss = nn.functional.cross_entropy(self.model(x).flatten(0, 1), y.flatten())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.step += 1
            if self.step % EVERY == 0:
                size = self.save()
                self.until = time.monotonic() + SECONDS
                print(f"step {self.step}: loss {loss.item():.3f}, checkpoint of {size} bytes", flush=True)


torch.manual_seed(0)
torch.set_num_threads(1)
night = Night(CharModel(len(set(TEXT))))
night.run()
print(f"night over after {night.step} steps", flush=True)
