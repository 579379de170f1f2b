import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def get_loader(batch_size):
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, 5, (1600,), generator=g)
    freq = (y + 1).float().view(-1, 1)
    t = torch.linspace(0, 6.28, 128)
    x = torch.sin(freq * t + 6.28 * torch.rand(1600, 1, generator=g)) + 0.8 * torch.randn(1600, 128, generator=g)
    return DataLoader(TensorDataset(x.unsqueeze(1), y), batch_size=batch_size, shuffle=True)


def get_model():
    return nn.Sequential(
        nn.Conv1d(1, 24, 9, padding=4), nn.ReLU(), nn.MaxPool1d(2),
        nn.Conv1d(24, 48, 9, padding=4), nn.ReLU(), nn.AdaptiveMaxPool1d(1),
        nn.Flatten(), nn.Linear(48, 5))


def train_one_epoch(model, loader, optimizer, global_step, args):
    model.train()
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        global_step += 1
        if global_step % args.log_every == 0:
            print(f"step {global_step}/{args.total_steps} loss {loss.item():.4f}", flush=True)
        if global_step >= args.total_steps:
            break
    return global_step


def main(args):
    torch.manual_seed(args.seed)
    loader, model = get_loader(args.batch_size), get_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    global_step = 0
    while global_step < args.total_steps:
        train_one_epoch(model, loader, optimizer, global_step, args)
    print("done", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--total-steps", type=int, default=800)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--log-every", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
