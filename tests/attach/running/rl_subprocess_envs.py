"""REINFORCE with cart-pole environments in subprocesses that talk over pipes."""

import math
import multiprocessing as mp
import random

import torch
from torch import nn


class CartPole:
    def reset(self):
        self.state = [random.uniform(-0.05, 0.05) for _ in range(4)]
        self.t = 0
        return list(self.state)

    def step(self, action):
        x, v, th, om = self.state
        for _ in range(40):  # fine integration steps
            force = 10.0 if action else -10.0
            temp = (force + 0.05 * om * om * math.sin(th)) / 1.1
            acc_th = (9.8 * math.sin(th) - math.cos(th) * temp) / (0.5 * (4 / 3 - 0.1 * math.cos(th) ** 2 / 1.1))
            acc = temp - 0.05 * acc_th * math.cos(th) / 1.1
            x, v, th, om = x + 5e-4 * v, v + 5e-4 * acc, th + 5e-4 * om, om + 5e-4 * acc_th
        self.state = [x, v, th, om]
        self.t += 1
        return list(self.state), 1.0, abs(x) > 2.4 or abs(th) > 0.21 or self.t >= 500


def env_worker(conn, parent_conn):
    parent_conn.close()
    env = CartPole()
    try:
        while True:
            command, action = conn.recv()
            if command == "reset":
                conn.send(env.reset())
            else:
                obs, reward, done = env.step(action)
                conn.send((env.reset() if done else obs, reward, done))
    except EOFError:
        pass


def main(num_envs=4, horizon=64):
    torch.set_num_threads(1)
    conns = []
    for _ in range(num_envs):
        ours, theirs = mp.Pipe()
        mp.Process(target=env_worker, args=(theirs, ours), daemon=True).start()
        theirs.close()
        conns.append(ours)
    policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    for c in conns:
        c.send(("reset", None))
    obs = torch.tensor([c.recv() for c in conns])
    for update in range(1_000_000):
        log_probs, rewards, dones = [], [], []
        for _ in range(horizon):
            dist = torch.distributions.Categorical(logits=policy(obs))
            action = dist.sample()
            for c, a in zip(conns, action.tolist(), strict=True):
                c.send(("step", a))
            results = [c.recv() for c in conns]
            log_probs.append(dist.log_prob(action))
            obs = torch.tensor([r[0] for r in results])
            rewards.append(torch.tensor([r[1] for r in results]))
            dones.append(torch.tensor([float(r[2]) for r in results]))
        returns, running = [], torch.zeros(num_envs)
        for reward, done in zip(reversed(rewards), reversed(dones), strict=True):
            running = reward + 0.99 * running * (1 - done)
            returns.insert(0, running)
        returns = torch.stack(returns)
        loss = -(torch.stack(log_probs) * (returns - returns.mean()) / (returns.std() + 1e-6)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update == 2:
            print("READY", flush=True)
        if update % 20 == 0:
            print(f"update {update} return {returns[0].mean().item():.1f}", flush=True)


if __name__ == "__main__":
    main()
