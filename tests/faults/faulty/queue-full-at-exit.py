import multiprocessing as mp

import torch
from torch import nn


def write_metrics(records, limit):
    """Keeps the best loss of the first records, then closes the file."""
    best = float("inf")
    for _ in range(limit):
        record = records.get()
        best = min(best, record["loss"])
    print(f"writer done, best {best:.4f}", flush=True)


def main():
    torch.manual_seed(0)
    x = torch.randn(2000, 20)
    y = (x @ torch.randn(20, 1)).tanh()
    net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    records = mp.Queue()
    writer = mp.Process(target=write_metrics, args=(records, 100), daemon=True)
    writer.start()
    for step in range(600):
        idx = torch.randint(0, 2000, (64,))
        loss = nn.functional.mse_loss(net(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        grads = {n: p.grad.flatten()[:40].tolist() for n, p in net.named_parameters()}
        records.put({"step": step, "loss": loss.item(), "grads": grads})
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.5f}", flush=True)
    writer.join()
    print("finished", flush=True)


if __name__ == "__main__":
    main()
