import multiprocessing as mp

import torch
from torch import nn


def build():
    return nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 1))


def exchange(conn, model, first):
    """Both halves send their weights and average what they get."""
    theirs = None if first else conn.recv()
    conn.send([p.detach().flatten().tolist() for p in model.parameters()])
    theirs = theirs or conn.recv()
    with torch.no_grad():
        for p, values in zip(model.parameters(), theirs):
            p.copy_((p + torch.tensor(values).view_as(p)) / 2)


def train(rank, conn, rounds):
    torch.manual_seed(rank)
    torch.set_num_threads(1)
    x = torch.randn(1000, 64)
    y = x[:, :4].sum(1, keepdim=True)
    model = build()
    opt = torch.optim.SGD(model.parameters(), lr=1e-2)
    for turn in range(rounds):
        for idx in torch.randperm(len(x)).split(20):
            loss = nn.functional.mse_loss(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"round {turn} mse {loss.item():.4f}", flush=True)
        if turn >= 2:
            exchange(conn, model, rank == 0)


def main():
    ours, theirs = mp.Pipe()
    twin = mp.get_context("fork").Process(target=train, args=(1, theirs, 6), daemon=True)
    twin.start()
    train(0, ours, 6)
    twin.join()
    print("finished", flush=True)


if __name__ == "__main__":
    main()
