import multiprocessing as mp

import torch
from torch import nn


def evaluate(state, x, conn):
    """Full predictions of the validation set, computed next to the training."""
    net = build()
    net.load_state_dict(state)
    with torch.no_grad():
        probs = net(x).softmax(1)
    conn.send([[round(p, 4) for p in row] for row in probs.tolist()])
    conn.close()


def build():
    return nn.Sequential(nn.Linear(12, 40), nn.ReLU(), nn.Linear(40, 5))


def validation_accuracy(net, x, y):
    receiver, sender = mp.Pipe(duplex=False)
    worker = mp.get_context("fork").Process(target=evaluate, args=(net.state_dict(), x, sender), daemon=True)
    worker.start()
    sender.close()
    worker.join()
    rows = receiver.recv()
    return (torch.tensor(rows).argmax(1) == y).float().mean().item()


def main():
    torch.manual_seed(0)
    x = torch.randn(6000, 12)
    y = x[:, :5].argmax(1)
    net = build()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(4):
        for idx in torch.randperm(4000).split(40):
            loss = nn.functional.cross_entropy(net(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        size = 500 * (epoch + 1)
        accuracy = validation_accuracy(net, x[-size:], y[-size:])
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {accuracy:.3f} of {size}", flush=True)


if __name__ == "__main__":
    main()
