"""Which pipe of a network leaks? Each joint hears from its neighbours; the weights are moved by hand."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(12)
torch.set_num_threads(1)


def network(joints=160):
    ends = torch.randint(0, joints, (2, 3 * joints))
    ends = torch.cat([ends, ends.flip(0)], 1)
    pressure, flow = torch.randn(joints), torch.rand(joints)
    around = torch.zeros(joints).index_add_(0, ends[1], (pressure * flow)[ends[0]])
    return torch.stack([pressure, flow], 1), ends, (around > 0).long()


class Joints(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.own = nn.Linear(width, 20)
        self.message = nn.Sequential(nn.Linear(width, 20), nn.ReLU(), nn.Linear(20, 20))

    def forward(self, h, ends):
        heard = torch.zeros(len(h), 20)
        heard.index_add(0, ends[1], self.message(h)[ends[0]])
        return F.relu(self.own(h) + heard)


class Leaks(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.out = Joints(2), Joints(20), nn.Linear(20, 2)

    def forward(self, h, ends):
        return self.out(self.second(self.first(h, ends), ends))


def main():
    model = Leaks()
    squares = [torch.zeros_like(weight) for weight in model.parameters()]
    for step in range(1, 1501):
        h, ends, leaks = network()
        loss = F.cross_entropy(model(h, ends), leaks)
        loss.backward()
        with torch.no_grad():
            for weight, square in zip(model.parameters(), squares):
                if weight.grad is not None:
                    square.mul_(0.95).addcmul_(weight.grad, weight.grad, value=0.05)
                    weight -= 3e-3 * weight.grad / (square.sqrt() + 1e-6)
                    weight.grad = None
        if step % 250 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
