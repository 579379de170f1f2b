import torch

HIDDEN = 24
STEPS = 60


def signed_sums(n, gen):
    """Each sequence of small steps is to be summed up."""
    x = 0.1 * torch.randn(n, STEPS, 2, generator=gen)
    return x, x.sum((1, 2))


class ReluRNN:
    def __init__(self, gen):
        self.wh = 0.02 * torch.randn(HIDDEN, HIDDEN, generator=gen) + torch.eye(HIDDEN)
        self.wx = 0.3 * torch.randn(2, HIDDEN, generator=gen)
        self.b = torch.zeros(HIDDEN)
        self.wo = 0.2 * torch.randn(HIDDEN, 1, generator=gen)
        self.bo = torch.zeros(1)
        for p in self.params():
            p.requires_grad_()

    def params(self):
        return [self.wh, self.wx, self.b, self.wo, self.bo]

    def __call__(self, x):
        h = torch.zeros(len(x), HIDDEN)
        for t in range(x.shape[1]):
            h = torch.relu(x[:, t] @ self.wx + h @ self.wh + self.b)
        return (h @ self.wo + self.bo).squeeze(1)


class Momentum:
    def __init__(self, params, lr, beta=0.9):
        self.params, self.lr, self.beta = params, lr, beta
        self.v = [torch.zeros_like(p) for p in params]

    @torch.no_grad()
    def apply(self, grads):
        for p, v, g in zip(self.params, self.v, grads):
            v.mul_(self.beta).add_(g)
            p.sub_(self.lr * v)


def main():
    gen = torch.Generator().manual_seed(5)
    rnn = ReluRNN(gen)
    update = Momentum(rnn.params(), lr=1e-4)
    x, y = signed_sums(2000, gen)
    running = None
    for step in range(400):
        idx = torch.randint(0, len(x), (50,), generator=gen)
        loss = ((rnn(x[idx]) - y[idx]) ** 2).mean()
        update.apply(torch.autograd.grad(loss, rnn.params()))
        running = loss.item() if running is None else 0.95 * running + 0.05 * loss.item()
        if step % 40 == 0:
            print(f"step {step} loss {running:.4f}", flush=True)
    print(f"final {running:.4f}")


if __name__ == "__main__":
    main()
