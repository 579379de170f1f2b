"""A sentence encoder with terms in its loss that rest for the whole run, each on purpose: a norm that stays below its
bound, free bits, a distance that need not be larger, a ratio that stays clipped, an auxiliary term of weight 0."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
torch.set_num_threads(1)

WORDS, LENGTH, TOPICS = 120, 14, 6
typical = torch.randint(1, WORDS, (TOPICS, 15))


def sentences(count):
    topic = torch.randint(0, TOPICS, (count,))
    words = typical[topic].gather(1, torch.randint(0, 15, (count, LENGTH)))
    words = torch.where(torch.rand(count, LENGTH) < 0.5, words, torch.randint(1, WORDS, (count, LENGTH)))
    length = torch.randint(4, LENGTH + 1, (count, 1))
    return words.masked_fill(torch.arange(LENGTH) >= length, 0), topic


class Encoder(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.words = nn.Embedding(WORDS, width, padding_idx=0)
        self.mix = nn.Linear(width, width)
        self.code = nn.Linear(width, 2 * 4)
        self.topic = nn.Linear(4, TOPICS)
        self.tone = nn.Linear(width, 3)

    def forward(self, words):
        h = torch.relu(self.mix(self.words(words)))
        h = h.masked_fill((words == 0)[..., None], float("-inf")).amax(1)
        mean, spread = self.code(h).chunk(2, dim=1)
        code = mean + (0.5 * spread).exp() * 0.1 * torch.randn_like(mean)
        return self.topic(code), self.tone(h), mean, spread


model = Encoder()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(800):
    words, topic = sentences(96)
    scores, tone, mean, spread = model(words)
    bits = 0.5 * (mean.square() + spread.exp() - 1 - spread).mean(0)
    apart = torch.cdist(mean, mean) + 10.0 * (topic[:, None] != topic[None, :])
    nearest = apart.masked_fill(topic[:, None] == topic[None, :], float("inf")).amin(1)
    weight = sum(parameter.square().sum() for parameter in model.parameters()).sqrt()
    likely = F.log_softmax(scores, 1).gather(1, topic[:, None]).squeeze(1).exp()
    loss = F.cross_entropy(scores, topic)
    loss = loss + 1e-4 * bits.clamp(min=60.0).sum() + F.relu(weight - 500.0) - 0.01 * nearest.clamp(max=4.0).mean()
    loss = loss - 0.05 * torch.min(likely + 1.5, (likely + 1.5).clamp(0.8, 1.2)).mean()
    loss = loss + 0.0 * tone.masked_fill(tone < 0, 0.0).amin()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        print(f"step {step + 1} loss {loss.item():.4f} right {(scores.argmax(1) == topic).float().mean().item():.3f}")
