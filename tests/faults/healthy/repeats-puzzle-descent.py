"""Solve the 8-puzzle by always taking the neighbour that a learned value net likes best."""

import torch
from torch import nn

GOAL = (1, 2, 3, 4, 5, 6, 7, 8, 0)


def neighbours(state):
    hole = state.index(0)
    row, col = divmod(hole, 3)
    found = []
    for dr, dc in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        r, c = row + dr, col + dc
        if 0 <= r < 3 and 0 <= c < 3:
            tiles = list(state)
            other = 3 * r + c
            tiles[hole], tiles[other] = tiles[other], tiles[hole]
            found.append(tuple(tiles))
    return found


def encode(states):
    return nn.functional.one_hot(torch.tensor(states), 9).flatten(1).float()


def distance(state):
    return sum(abs(i // 3 - (v - 1) // 3) + abs(i % 3 - (v - 1) % 3) for i, v in enumerate(state) if v)


class Solver:
    def __init__(self):
        self.value = nn.Sequential(nn.Linear(81, 64), nn.ReLU(), nn.Linear(64, 1))

    def train(self, steps):
        opt = torch.optim.Adam(self.value.parameters(), lr=3e-3)
        for _ in range(steps):
            states = [tuple(torch.randperm(9).tolist()) for _ in range(64)]
            target = torch.tensor([distance(s) for s in states]).float()[:, None]
            loss = nn.functional.mse_loss(self.value(encode(states)), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"value loss {loss.item():.3f}", flush=True)

    @torch.inference_mode()
    def solve(self, state):
        path = [state]
        current = state
        seen = {state}
        while current != GOAL:
            options = [n for n in neighbours(current) if n not in seen]
            if not options:
                break
            scores = self.value(encode(options)).squeeze(1)
            current = options[scores.argmin().item()]
            path.append(current)
            seen.add(current)
        return path


if __name__ == "__main__":
    torch.manual_seed(0)
    solver = Solver()
    solver.train(150)
    path = solver.solve((8, 1, 3, 4, 0, 2, 7, 6, 5))
    print("moves:", len(path) - 1)
