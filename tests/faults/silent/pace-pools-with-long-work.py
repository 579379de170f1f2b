"""Each round asks a slow simulator through a pool of its own, and an evaluator of its own is started beside the
training: both start a new interpreter each time, and nobody waits for that."""

import multiprocessing as mp
import time


def simulated(seed):
    time.sleep(1.0)  # an instrument that takes its time
    return [((seed * 37 + n * 11) % 97) / 97 for n in range(64)]


def evaluated(weights, number):
    print(f"evaluation {number}: {sum(weights):.4f}", flush=True)


def main():
    import torch
    from torch import nn

    torch.manual_seed(0)
    context = mp.get_context("spawn")
    model = nn.Sequential(nn.Linear(8, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number in range(5):
        with context.Pool(2) as pool:
            table = torch.tensor(pool.map(simulated, range(8 * number, 8 * number + 8))).reshape(-1, 8)
        target = table.sum(1, keepdim=True)
        weights = model[0].weight.detach().flatten()[:8].tolist()
        evaluator = context.Process(target=evaluated, args=(weights, number))
        evaluator.start()
        for _ in range(600):
            loss = nn.functional.mse_loss(model(table), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        evaluator.join()
        print(f"round {number} loss {loss.item():.5f}", flush=True)


if __name__ == "__main__":
    main()
