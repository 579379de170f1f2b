"""A next-character model from RNNCell with ReLU over long passages, no clipping."""

import torch
from torch import nn

torch.manual_seed(2)
text = "the sea was calm and the wind was low. " * 120
chars = sorted(set(text))
codes = torch.tensor([chars.index(c) for c in text])
T, H = 80, 48


class CharModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(chars), 16)
        self.cell = nn.RNNCell(16, H, nonlinearity="relu")
        nn.init.eye_(self.cell.weight_hh)
        self.cell.weight_hh.data.mul_(0.8)
        self.decode = nn.Linear(H, len(chars))

    def forward(self, tokens):
        h = torch.zeros(len(tokens), H)
        logits = []
        for t in range(tokens.shape[1]):
            h = self.cell(self.embed(tokens[:, t]), h)
            logits.append(self.decode(h))
        return torch.stack(logits, 1)


model = CharModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(150):
    starts = torch.randint(len(codes) - T - 1, (16,)).tolist()
    x = torch.stack([codes[s : s + T] for s in starts])
    y = torch.stack([codes[s + 1 : s + T + 1] for s in starts])
    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 10 == 0:
        print(step, loss.item())
