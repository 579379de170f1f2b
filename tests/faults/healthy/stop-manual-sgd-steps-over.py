import torch

torch.manual_seed(0)


def network(width=40):
    return [(0.3 * torch.randn(6, width)).requires_grad_(), torch.zeros(width, requires_grad=True),
            (0.3 * torch.randn(width, 1)).requires_grad_()]


def forward(params, x):
    w1, b1, w2 = params
    return torch.tanh(x @ w1 + b1) @ w2


def update(params, rate):
    with torch.no_grad():
        for p in params:
            p -= rate * p.grad
            p.grad = None


def fit(x, y, rate=0.05, stop_at=0.001):
    params = network()
    step = 0
    while True:
        rows = torch.randint(len(x), (50,))
        loss = (forward(params, x[rows]) - y[rows]).pow(2).mean()
        loss.backward()
        update(params, rate)
        step += 1
        if step % 500 == 0:
            rate *= 0.5
            print(f"step {step} loss {loss.item():.4f} rate {rate:g}", flush=True)
        if rate <= stop_at:
            return params


x = torch.randn(500, 6)
y = (x[:, :1] * x[:, 1:2]).sin() + 0.5 * torch.randn(500, 1)
fit(x, y)
print("fitted", flush=True)
