import math

import torch
from torch import nn
from torch.func import functional_call


class SineTasks:
    def __init__(self, shots, seed):
        self.shots = shots
        self.gen = torch.Generator().manual_seed(seed)

    def uniform(self, *shape, lo=0.0, hi=1.0):
        return lo + (hi - lo) * torch.rand(*shape, generator=self.gen)

    def sample(self):
        amp = self.uniform(1, lo=0.5, hi=3.0)
        phase = self.uniform(1, lo=0.0, hi=math.pi)
        xs = self.uniform(self.shots, 1, lo=-3.0, hi=3.0)
        xq = self.uniform(self.shots, 1, lo=-3.0, hi=3.0)
        return (xs, amp * torch.sin(xs + phase)), (xq, amp * torch.sin(xq + phase))


class MetaLearner:
    def __init__(self, inner_lr=0.02, inner_steps=2, meta_lr=2e-3, tasks_per_batch=8):
        self.net = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))
        self.inner_lr = inner_lr
        self.inner_steps = inner_steps
        self.tasks_per_batch = tasks_per_batch
        self.meta_opt = torch.optim.Adam(self.net.parameters(), lr=meta_lr)

    def loss(self, weights, x, y):
        return nn.functional.mse_loss(functional_call(self.net, weights, (x,)), y)

    def adapt(self, support, steps=None):
        weights = {name: p.clone() for name, p in self.net.named_parameters()}
        for _ in range(steps or self.inner_steps):
            loss = self.loss(weights, *support)
            grads = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
            weights = {n: w - self.inner_lr * g for (n, w), g in zip(weights.items(), grads)}
        return weights

    def meta_step(self, tasks):
        total = 0.0
        for _ in range(self.tasks_per_batch):
            support, query = tasks.sample()
            total = total + self.loss(self.adapt(support), *query)
        total = total / self.tasks_per_batch
        self.meta_opt.zero_grad()
        total.backward()
        self.meta_opt.step()
        return total.item()

    def evaluate(self, n=60):
        tasks = SineTasks(shots=10, seed=999)
        before = after = 0.0
        plain = dict(self.net.named_parameters())
        for _ in range(n):
            support, query = tasks.sample()
            before += self.loss(plain, *query).item() / n
            after += self.loss(self.adapt(support, steps=5), *query).item() / n
        return before, after


def main():
    torch.manual_seed(21)
    tasks = SineTasks(shots=10, seed=4)
    learner = MetaLearner()
    window = []
    for it in range(1, 361):
        window.append(learner.meta_step(tasks))
        if it % 60 == 0:
            print(f"iteration {it}: query loss {sum(window) / len(window):.4f}")
            window.clear()
    before, after = learner.evaluate()
    print(f"new tasks: {before:.4f} before adaptation, {after:.4f} after")


main()
