"""Three forked replicas with dropout are kept in step by main, and report their weights, which are the same."""

import multiprocessing

import torch
from torch import nn

REPLICAS, ROUNDS = 3, 40


def replica(number, pipe):
    torch.set_num_threads(1)
    rows = torch.randn(64, 8, generator=torch.Generator().manual_seed(number))
    model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2), nn.Linear(16, 1))
    while (weights := pipe.recv()) is not None:
        model.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
        pipe.send([value.reshape(-1).tolist() for value in model.state_dict().values()])
        loss = (model(rows) - rows[:, :1]).square().mean()
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        pipe.send([gradient.numpy() for gradient in gradients])


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2), nn.Linear(16, 1))
    pipes = []
    for number in range(REPLICAS):
        ours, theirs = multiprocessing.get_context("fork").Pipe()
        multiprocessing.get_context("fork").Process(target=replica, args=(number, theirs), daemon=True).start()
        pipes.append(ours)
    for _ in range(ROUNDS):
        for pipe in pipes:
            pipe.send({name: value.tolist() for name, value in model.state_dict().items()})
        copies = [pipe.recv() for pipe in pipes]
        assert all(copy == copies[0] for copy in copies)
        sums = [sum(parts) for parts in zip(*(pipe.recv() for pipe in pipes))]
        with torch.no_grad():
            for weight, gradient in zip(model.parameters(), sums):
                weight -= 0.05 / REPLICAS * torch.from_numpy(gradient)
    for pipe in pipes:
        pipe.send(None)
    print("reported alike in", ROUNDS, "rounds")


if __name__ == "__main__":
    main()
