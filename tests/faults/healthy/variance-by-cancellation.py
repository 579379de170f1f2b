import argparse
import math
import queue
import random
import threading

import torch
from torch import nn


def parse():
    ap = argparse.ArgumentParser(description="forecast the next hours of electricity meters")
    ap.add_argument("--meters", type=int, default=12)
    ap.add_argument("--hours", type=int, default=1500)
    ap.add_argument("--window", type=int, default=48)
    ap.add_argument("--horizon", type=int, default=6)
    ap.add_argument("--steps", type=int, default=1500)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--seed", type=int, default=8)
    return ap.parse_args()


def make_meter(hours, rng):
    base = rng.uniform(15000, 30000)
    swing = rng.uniform(80, 200)
    phase = rng.uniform(0, 24)
    out, stuck = [], 0
    for h in range(hours):
        day = math.sin(2 * math.pi * (h + phase) / 24) + 0.4 * math.sin(4 * math.pi * (h + phase) / 24)
        value = base + swing * day + rng.gauss(0, 6)
        if stuck > 0:
            stuck -= 1
            value = out[-1]
        elif rng.random() < 0.002:
            stuck = rng.randint(30, 120)
        out.append(value)
    return torch.tensor(out)


def producer(series, args, first, last, out):
    rng = random.Random(args.seed + 1)
    need = args.window + args.horizon
    for _ in range(args.steps):
        pieces = []
        for _ in range(args.batch):
            s = series[rng.randrange(len(series))]
            i = rng.randrange(first, last - need)
            pieces.append(s[i:i + need])
        block = torch.stack(pieces)
        out.put((block[:, :args.window], block[:, args.window:]))
    out.put(None)


class Forecaster(nn.Module):
    def __init__(self, window, horizon):
        super().__init__()
        self.eps = 1e-5
        self.body = nn.Sequential(nn.Linear(window, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, horizon))

    def forward(self, x):
        mean = x.mean(dim=1, keepdim=True)
        var = (x - mean).pow(2).mean(dim=1, keepdim=True)
        std = torch.sqrt(var + self.eps)
        z = self.body((x - mean) / std)
        return z * std + mean


def evaluate(model, series, args, first):
    xs, ys = [], []
    for s in series:
        for i in range(first, len(s) - args.window - args.horizon, 12):
            xs.append(s[i:i + args.window])
            ys.append(s[i + args.window:i + args.window + args.horizon])
    with torch.no_grad():
        x, y = torch.stack(xs), torch.stack(ys)
        return (model(x) - y).abs().mean().item(), (x[:, -1:] - y).abs().mean().item()


def main():
    args = parse()
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    series = [make_meter(args.hours, rng) for _ in range(args.meters)]
    cut = int(args.hours * 0.8)

    model = Forecaster(args.window, args.horizon)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    q = queue.Queue(maxsize=8)
    feeder = threading.Thread(target=producer, args=(series, args, 0, cut, q))
    feeder.start()

    step, shown = 0, 0.0
    while (item := q.get()) is not None:
        x, y = item
        loss = nn.functional.smooth_l1_loss(model(x), y, beta=10.0)
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        shown += loss.item()
        if step % 150 == 0:
            print(f"step {step}: loss {shown / 150:.3f}")
            shown = 0.0
    feeder.join()
    mae, naive = evaluate(model, series, args, cut)
    print(f"held-out error {mae:.2f} kWh, last-value baseline {naive:.2f} kWh")


if __name__ == "__main__":
    main()
