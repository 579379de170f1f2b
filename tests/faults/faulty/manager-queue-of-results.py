"""Simulators put episodes into a manager's queue; one of them fails and its episodes never come."""

import multiprocessing as mp

import torch
from torch import nn


def simulate(number, out):
    g = torch.Generator().manual_seed(number)
    for episode in range(20):
        length = (episode * 7 + number * 3) % 23 - 1
        states = torch.randn(max(length, 1), 4, generator=g)
        returns = [sum(range(length))][length // 30] / length
        out.put((states.tolist(), returns))


def main():
    torch.manual_seed(0)
    with mp.get_context("fork").Manager() as manager:
        episodes = manager.Queue()
        workers = [mp.get_context("fork").Process(target=simulate, args=(n, episodes), daemon=True) for n in range(3)]
        for worker in workers:
            worker.start()
        critic = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(critic.parameters(), lr=0.01)
        for number in range(60):
            states, returns = episodes.get()
            loss = (critic(torch.tensor(states)).mean() - returns).square()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if number % 10 == 0:
                print(f"episode {number} loss {loss.item():.4f}", flush=True)
        for worker in workers:
            worker.join()


if __name__ == "__main__":
    main()
