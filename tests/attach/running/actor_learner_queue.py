"""Actors search grid mazes and put trajectories on a queue; the learner clones their behaviour."""

import collections
import multiprocessing as mp
import random

import torch
from torch import nn

SIZE = 31
MOVES = [(-1, 0), (1, 0), (0, -1), (0, 1)]


def solve(walls, start, goal):
    """Breadth-first search; the moves of one shortest path, or None."""
    frontier = collections.deque([start])
    came = {start: None}
    while frontier:
        cell = frontier.popleft()
        if cell == goal:
            break
        for k, (dy, dx) in enumerate(MOVES):
            nxt = (cell[0] + dy, cell[1] + dx)
            if 0 <= nxt[0] < SIZE and 0 <= nxt[1] < SIZE and nxt not in walls and nxt not in came:
                came[nxt] = (cell, k)
                frontier.append(nxt)
    if goal not in came:
        return None
    path = []
    while came[goal] is not None:
        goal, k = came[goal]
        path.append((goal, k))
    return path[::-1]


def actor(out, seed):
    rng = random.Random(seed)
    batch = []
    while True:
        cells = [(y, x) for y in range(SIZE) for x in range(SIZE)]
        walls = set(rng.sample(cells, SIZE * SIZE // 4))
        start, goal = rng.sample([c for c in cells if c not in walls], 2)
        for (y, x), move in solve(walls, start, goal) or []:
            blocked = [float((y + dy, x + dx) in walls) for dy, dx in MOVES]
            batch.append(([(goal[0] - y) / SIZE, (goal[1] - x) / SIZE, *blocked], move))
        if len(batch) > 4000:
            out.put(batch)
            batch = []


def main():
    torch.set_num_threads(1)
    trajectories = mp.Queue(maxsize=4)
    for seed in range(2):
        mp.Process(target=actor, args=(trajectories, seed), daemon=True).start()
    policy = nn.Sequential(nn.Linear(6, 128), nn.ReLU(), nn.Linear(128, 4))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    update = 0
    while True:
        batch = trajectories.get()
        features = torch.tensor([f for f, _ in batch])
        moves = torch.tensor([m for _, m in batch])
        loss = nn.functional.cross_entropy(policy(features), moves)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update == 0:
            print("READY", flush=True)
        update += 1
        if update % 10 == 0:
            print(f"update {update} loss {loss.item():.3f} queue {trajectories.qsize()}", flush=True)


if __name__ == "__main__":
    main()
