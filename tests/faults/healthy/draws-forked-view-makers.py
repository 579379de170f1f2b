"""Augmented pairs for contrastive learning, made by processes of the script's own that send them through pipes."""

import multiprocessing as mp

import numpy as np
import torch
from torch.nn import functional

SERIES, LENGTH, MAKERS, EACH, STEPS = 200, 48, 3, 16, 250


def augmented(series):
    shifts = np.random.randint(-4, 5, len(series))
    moved = np.stack([np.roll(one, shift) for one, shift in zip(series, shifts)])
    return (moved + np.random.normal(0, 0.1, moved.shape)).astype(np.float32)


def make_views(number, series, pipe):
    np.random.seed(500 + number)
    while pipe.recv():
        chosen = series[np.random.choice(len(series), EACH, replace=False)]
        pipe.send((augmented(chosen), augmented(chosen)))


def main():
    np.random.seed(3)
    torch.manual_seed(3)
    times = np.linspace(0, 6, LENGTH)
    series = np.stack([np.sin(times * np.random.uniform(1, 5) + np.random.uniform(0, 6)) for _ in range(SERIES)])
    pipes, makers = [], []
    for number in range(MAKERS):
        ours, theirs = mp.get_context("fork").Pipe()
        makers.append(mp.get_context("fork").Process(target=make_views, args=(number, series, theirs), daemon=True))
        makers[-1].start()
        pipes.append(ours)
    encoder = torch.nn.Sequential(torch.nn.Linear(LENGTH, 64), torch.nn.ReLU(), torch.nn.Linear(64, 16))
    for step in range(STEPS):
        for pipe in pipes:
            pipe.send(True)
        parts = [pipe.recv() for pipe in pipes]
        one, other = (functional.normalize(encoder(torch.from_numpy(np.concatenate(v))), dim=1) for v in zip(*parts))
        loss = functional.cross_entropy(one @ other.T / 0.1, torch.arange(len(one)))
        gradients = torch.autograd.grad(loss, list(encoder.parameters()))
        with torch.no_grad():
            for weight, gradient in zip(encoder.parameters(), gradients):
                weight -= 0.1 * gradient
        if step % 50 == 0:
            print(step, round(loss.item(), 3))
    for pipe, maker in zip(pipes, makers):
        pipe.send(False)
        maker.join()


if __name__ == "__main__":
    main()
