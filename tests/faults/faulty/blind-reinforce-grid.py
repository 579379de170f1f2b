import torch
from torch import nn
from torch.distributions import Categorical

SIZE, GOAL = 7, (6, 6)
MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]


class GridWorld:
    def reset(self, g):
        self.pos = torch.randint(0, SIZE, (2,), generator=g).tolist()
        self.t = 0
        return self.observe()

    def observe(self):
        return torch.tensor([self.pos[0] / 3.0 - 1, self.pos[1] / 3.0 - 1])

    def step(self, a):
        self.pos = [min(SIZE - 1, max(0, p + d)) for p, d in zip(self.pos, MOVES[a])]
        self.t += 1
        done = tuple(self.pos) == GOAL
        return self.observe(), 1.0 if done else -0.05, done or self.t >= 30


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 4))

    def forward(self, obs):
        return Categorical(logits=self.net(obs))


def rollout(env, policy, g, gamma=0.97):
    obs, log_probs, rewards, done = env.reset(g), [], [], False
    while not done:
        dist = policy(obs)
        a = dist.sample()
        obs, r, done = env.step(int(a))
        log_probs.append(dist.log_prob(a))
        rewards.append(r)
    returns, acc = [], 0.0
    for r in reversed(rewards):
        acc = r + gamma * acc
        returns.insert(0, acc)
    return torch.stack(log_probs), torch.tensor(returns), sum(rewards)


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    env, policy = GridWorld(), Policy()
    opt = torch.optim.Adam(policy.parameters(), lr=5e-3)
    recent, baseline = [], 0.0
    for episode in range(600):
        log_probs, returns, score = rollout(env, policy, g)
        adv = (returns - baseline) / (returns.std() + 0.1)
        baseline = 0.95 * baseline + 0.05 * returns.mean().item()
        loss = -(log_probs * adv).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        recent = (recent + [score])[-100:]
        if episode % 50 == 0:
            print(f"episode {episode} mean return {sum(recent) / len(recent):.3f}", flush=True)


if __name__ == "__main__":
    main()
