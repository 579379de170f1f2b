"""Biased matrix factorisation of a ratings table, SGD by hand."""
import torch

torch.manual_seed(0)
USERS, ITEMS, RANK, N = 900, 500, 8, 90_000


def make_ratings():
    u = torch.randint(USERS, (N,))
    i = torch.randint(ITEMS, (N,))
    pu, qi = torch.randn(USERS, 4) * 0.6, torch.randn(ITEMS, 4) * 0.6
    r = 3.5 + 0.4 * torch.randn(USERS)[u] + 0.5 * torch.randn(ITEMS)[i] + (pu[u] * qi[i]).sum(1)
    return u, i, (r + 0.2 * torch.randn(N)).clamp(1, 5)


class RatingStream:
    """Gives shuffled mini-batches of (user, item, rating)."""

    def __init__(self, users, items, ratings, batch):
        self.users, self.items, self.ratings = users, items, ratings
        self.batch = batch
        self._shuffle()

    def _shuffle(self):
        self.order = torch.randperm(len(self.ratings))
        self.pos = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.pos >= len(self.order):
            self._shuffle()
            raise StopIteration
        sel = self.order[self.pos:self.pos + self.batch]
        self.pos += self.batch
        return self.users[sel], self.items[sel], self.ratings[sel]


u, i, r = make_ratings()
cut = int(0.9 * N)
stream = RatingStream(u[:cut], i[:cut], r[:cut], batch=48)
test = (u[cut:], i[cut:], r[cut:])

P = (0.1 * torch.randn(USERS, RANK)).requires_grad_()
Q = (0.1 * torch.randn(ITEMS, RANK)).requires_grad_()
bu = torch.zeros(USERS, requires_grad=True)
bi = torch.zeros(ITEMS, requires_grad=True)
mu = r[:cut].mean()
factors = [P, Q, bu, bi]


def predict(uu, ii):
    return mu + bu[uu] + bi[ii] + (P[uu] * Q[ii]).sum(1)


lr, reg = 0.7, 1e-4
updates = 0
for epoch in range(26):
    total, count = 0.0, 0
    for uu, ii, rr in stream:
        err = predict(uu, ii) - rr
        loss = (err ** 2).mean() + reg * ((P[uu] ** 2).sum(1) + (Q[ii] ** 2).sum(1)).mean()
        grads = torch.autograd.grad(loss, factors)
        with torch.no_grad():
            for f, g in zip(factors, grads):
                f -= lr * g
        total += (err.detach() ** 2).sum().item()
        count += len(rr)
        updates += 1
        if updates % 2000 == 0:
            print(f"  update {updates}  rmse so far {(total / count) ** 0.5:.4f}")
    with torch.no_grad():
        rmse = ((predict(test[0], test[1]) - test[2]) ** 2).mean().sqrt().item()
    print(f"epoch {epoch:2d}  train rmse {(total / count) ** 0.5:.4f}  test rmse {rmse:.4f}")
