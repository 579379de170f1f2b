import torch
import torch.multiprocessing as mp
from torch import nn


def build():
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 3))


def mine(rank, state, x, y, results):
    """Score one half of the pool; report index, loss and features of every example."""
    torch.set_num_threads(1)
    net = build()
    net.load_state_dict(state)
    with torch.no_grad():
        losses = nn.functional.cross_entropy(net(x), y, reduction="none").tolist()
    for i in range(rank, len(x), 2):
        results.put((i, losses[i], x[i].tolist()))


def hard_examples(net, x, y):
    ctx = mp.get_context("spawn")
    results = ctx.Queue()
    state = {k: v.clone() for k, v in net.state_dict().items()}
    miners = [ctx.Process(target=mine, args=(r, state, x, y, results), daemon=True) for r in range(2)]
    for m in miners:
        m.start()
    for m in miners:
        m.join()
    found = [results.get() for _ in range(len(x))]
    return [i for i, loss, _ in sorted(found, key=lambda r: -r[1])[:200]]


def main():
    torch.manual_seed(0)
    x = torch.randn(1500, 16)
    y = (x[:, :3] + x[:, 3:6]).argmax(1)
    net = build()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    hard = []
    for epoch in range(3):
        order = torch.randperm(len(x)).tolist() + hard
        for k in range(0, len(order), 20):
            idx = torch.tensor(order[k : k + 20])
            loss = nn.functional.cross_entropy(net(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
        if epoch == 0:
            hard = hard_examples(net, x, y)
            print(f"{len(hard)} hard examples, first {sorted(hard)[:5]}", flush=True)


if __name__ == "__main__":
    main()
