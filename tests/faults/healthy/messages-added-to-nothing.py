"""Which side the neighbourhood of a node leans to; trained by an RMSprop of its own."""

import torch
from torch import nn

torch.manual_seed(11)


def graph(nodes=150):
    ends = torch.randint(0, nodes, (2, 4 * nodes))
    source, target = torch.cat([ends, ends.flip(0)], 1)
    features = torch.randn(nodes, 3)
    pull = torch.zeros(nodes).index_add_(0, target, features[source, 0])
    return features, source, target, (pull > 0).long()


class Round(nn.Module):
    def __init__(self, size_in, size):
        super().__init__()
        self.own, self.message = nn.Linear(size_in, size), nn.Linear(size_in, size)

    def forward(self, features, source, target):
        sent = self.message(features)[source]
        heard = torch.zeros(len(features), sent.shape[1])
        heard.index_add_(0, target, sent)
        return torch.relu(self.own(features) + heard)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.out = Round(3, 24), Round(24, 24), nn.Linear(24, 2)

    def forward(self, features, source, target):
        return self.out(self.second(self.first(features, source, target), source, target))


net = Net()
weights = list(net.parameters())
squares = [torch.zeros_like(weight) for weight in weights]
right = 0.5
for step in range(1, 801):
    features, source, target, side = graph()
    scores = net(features, source, target)
    nn.functional.cross_entropy(scores, side).backward()
    with torch.no_grad():
        for weight, square in zip(weights, squares):
            if weight.grad is not None:
                square.mul_(0.95).addcmul_(weight.grad, weight.grad, value=0.05)
                weight.sub_(2e-3 * weight.grad / (square.sqrt() + 1e-6))
                weight.grad = None
    right = 0.98 * right + 0.02 * (scores.argmax(1) == side).float().mean().item()
    if step % 100 == 0:
        print(f"step {step}: {right:.1%} right")
