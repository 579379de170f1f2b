"""A bandit whose rewards are scaled by the spread of those so far, beginning with the first."""

import torch


class Scaler:
    def __init__(self):
        self.rewards = []

    def __call__(self, reward):
        self.rewards.append(reward)
        history = torch.tensor(self.rewards)
        spread = history.std().clamp(min=1e-3) if len(self.rewards) > 1 else torch.tensor(1.0)
        return (reward - history.mean()) / spread


torch.manual_seed(2)
arms = torch.tensor([0.1, 0.9, 0.3, 0.5])
preferences = torch.zeros(4, requires_grad=True)
scale = Scaler()
for pull in range(400):
    probabilities = preferences.softmax(0)
    arm = torch.multinomial(probabilities.detach(), 1).item()
    reward = float(torch.bernoulli(arms[arm]))
    loss = -probabilities[arm].log() * scale(reward)
    loss.backward()
    with torch.no_grad():
        preferences -= 0.1 * preferences.grad
        preferences.grad.zero_()
    if pull % 50 == 0:
        print(pull, [round(p, 2) for p in probabilities.tolist()])
