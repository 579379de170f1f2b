"""Users of a forum sorted by topic: a graph network that sums over whom a user has answered, layer after layer."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(5)
USERS, TOPICS, LAYERS = 700, 6, 5

topic = torch.randint(0, TOPICS, (USERS,))
near = torch.where(topic[:, None] == topic[None, :], 0.12, 0.02)
answered = (torch.rand(USERS, USERS) < near).float()
links = ((answered + answered.t() + torch.eye(USERS)) > 0).float()
words = torch.randn(USERS, 20)
words[:, :TOPICS] += 0.8 * F.one_hot(topic, TOPICS)


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.own, self.others = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, h, links):
        return h + F.relu(self.own(h) + links @ self.others(h))


class Forum(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.enter, self.head = nn.Linear(20, width), nn.Linear(width, TOPICS)
        self.layers = nn.ModuleList([Layer(width) for _ in range(LAYERS)])

    def forward(self, words, links):
        h = self.enter(words)
        for layer in self.layers:
            h = layer(h, links)
        return self.head(h)


model = Forum()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
train = torch.rand(USERS) < 0.5
for step in range(300):
    scores = model(words, links)
    loss = F.cross_entropy(scores[train], topic[train])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        right = (scores.argmax(1) == topic)[~train].float().mean().item()
        print(f"step {step + 1}: loss {loss.item():.4f}, {right:.0%} of the others right", flush=True)
