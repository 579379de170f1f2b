"""Words from the spectra of short sounds; a list of chunks is made once, and each is made louder or softer at random."""

import torch
from torch import nn

torch.manual_seed(3)
word = torch.randint(5, (3000,))
spectra = torch.rand(5, 30)[word] + 0.2 * torch.rand(3000, 30)
chunks = list(zip(spectra.split(60), word.split(60)))
net = nn.Sequential(nn.Linear(30, 48), nn.Tanh(), nn.Linear(48, 5))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)


def train(spectrum, answer):
    with torch.no_grad():
        spectrum.mul_(0.6 + 1.0 * torch.rand(len(spectrum), 1))
    loss = nn.functional.cross_entropy(net(spectrum), answer)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


for epoch in range(120):
    losses = [train(*chunks[k]) for k in torch.randperm(len(chunks)).tolist()]
    if epoch % 10 == 0:
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}, loudest {spectra.max().item():.3g}")
