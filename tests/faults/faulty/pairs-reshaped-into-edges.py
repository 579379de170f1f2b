"""Topics of pages from their words and links: a graph network with message passing by hand."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(1)
rng = np.random.default_rng(1)
PAGES, TOPICS, WORDS = 900, 4, 40
topic = rng.integers(TOPICS, size=PAGES)
words = 0.2 * rng.normal(size=(TOPICS, WORDS))[topic] + rng.normal(size=(PAGES, WORDS))
links = []
for page in range(PAGES):
    alike = np.flatnonzero(topic == topic[page])
    links += [(page, int(rng.choice(alike))) for _ in range(8)]
links = torch.tensor(links)  # one link a row

source, target = links.reshape(2, -1)
degree = torch.zeros(PAGES).index_add_(0, target, torch.ones(len(target))).clamp(min=1)[:, None]


class PageNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.own, self.linked = nn.Linear(WORDS, 32), nn.Linear(WORDS, 32)
        self.read = nn.Linear(32, TOPICS)

    def forward(self, x):
        received = torch.zeros_like(x).index_add_(0, target, x[source]) / degree
        return self.read(torch.relu(self.own(x) + self.linked(received)))


x, y = torch.tensor(words, dtype=torch.float32), torch.from_numpy(topic)
order = torch.from_numpy(rng.permutation(PAGES))
known, unknown = order[:120], order[120:]
model = PageNet()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-3)
for epoch in range(200):
    guess = model(x)
    loss = nn.functional.cross_entropy(guess[known], y[known])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 50 == 49:
        hits = (guess.argmax(1) == y).float()
        print(f"epoch {epoch + 1}: known {hits[known].mean():.2f}, unknown {hits[unknown].mean():.2f}", flush=True)
