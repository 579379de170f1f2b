"""Labels are computed in a process pool; the tasks wait for parameters that main sends only afterwards."""

import multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor

import torch
from torch import nn

PARAMETERS = None


def receive(parameters):
    global PARAMETERS
    PARAMETERS = parameters


def label(rows):
    weight = PARAMETERS.get()
    return [sum(w * v for w, v in zip(weight, row)) for row in rows]


def main():
    torch.manual_seed(0)
    context = mp.get_context("fork")
    parameters = context.Queue()
    student = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.05)
    teacher = [0.5, -1.0, 2.0, 0.0, 1.0]
    with ProcessPoolExecutor(2, mp_context=context, initializer=receive, initargs=(parameters,)) as pool:
        for step in range(30):
            x = torch.randn(32, 5)
            futures = [pool.submit(label, part.tolist()) for part in x.split(8)]
            for _ in range(len(futures) - step // 20):
                parameters.put(teacher)
            y = torch.tensor([v for f in futures for v in f.result()])
            loss = (student(x)[:, 0] - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
