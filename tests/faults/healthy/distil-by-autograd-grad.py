import torch
from torch import nn


def blobs(n, classes=5, dim=8):
    g = torch.Generator().manual_seed(17)
    centres = 1.6 * torch.randn(classes, dim, generator=g)
    y = torch.randint(0, classes, (n,), generator=g)
    return centres[y] + torch.randn(n, dim, generator=g), y, centres


class Teacher:
    """Nearest-centre votes: each of the copies of the sample votes for one class."""

    def __init__(self, centres, votes=9, noise=1.0):
        self.centres, self.votes, self.noise = centres, votes, noise

    def probs(self, x):
        counts = torch.zeros(len(x), len(self.centres))
        for _ in range(self.votes):
            near = torch.cdist(x + self.noise * torch.randn_like(x), self.centres).argmin(1)
            counts[torch.arange(len(x)), near] += 1
        return counts / self.votes


def confidence(p):
    """1 where the teacher is sure, 0 where it votes evenly."""
    with torch.no_grad():
        entropy = -(p * p.clamp(min=1e-9).log()).sum(1)
        return 1 - entropy / torch.log(torch.tensor(float(p.shape[1])))


def distil(student, teacher, x, epochs=8, lr=0.2):
    params = list(student.parameters())
    for epoch in range(epochs):
        total = 0.0
        for idx in torch.randperm(len(x)).split(48):
            target = teacher.probs(x[idx])
            weight = confidence(target)
            logp = student(x[idx]).log_softmax(1)
            loss = -(weight * (target * logp).sum(1)).mean()
            grads = torch.autograd.grad(loss, params)
            with torch.no_grad():
                for p, g in zip(params, grads):
                    p.sub_(lr * g)
            total += loss.item() * len(idx)
        print(f"epoch {epoch} distillation loss {total / len(x):.4f}", flush=True)


def main():
    torch.manual_seed(0)
    x, y, centres = blobs(1500)
    student = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 5))
    distil(student, Teacher(centres), x)
    with torch.no_grad():
        acc = (student(x).argmax(1) == y).float().mean().item()
    print(f"student accuracy {acc:.3f}")


if __name__ == "__main__":
    main()
