# PPO on a little cart that has to be parked at the origin
import torch
import torch.nn as nn

torch.manual_seed(3)

N_ENVS = 16
HORIZON = 64
TOTAL_STEPS = 64 * 60
GAMMA, LAM = 0.97, 0.95
CLIP = 0.2
K_EPOCHS = 4
MINIBATCH = 256

actor = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 3))
critic = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=2e-3)


def reset(n):
    s = torch.zeros(n, 2)
    s[:, 0] = torch.rand(n) * 4 - 2
    return s


def env_step(s, a, age):
    force = (a - 1).float()
    vel = (s[:, 1] + 0.1 * force) * 0.95
    pos = s[:, 0] + 0.1 * vel
    reward = -(pos ** 2) - 0.1 * vel ** 2
    age = age + 1
    done = (pos.abs() > 4) | (age >= 100)
    nxt = torch.stack([pos, vel], 1)
    nxt[done] = reset(int(done.sum()))
    age = torch.where(done, torch.zeros_like(age), age)
    return nxt, reward, done.float(), age


state = reset(N_ENVS)
age = torch.zeros(N_ENVS)
history = []

t = 0
while t < TOTAL_STEPS:
    obs, acts, logps, rews, dones, vals = [], [], [], [], [], []
    # ---- collect
    for _ in range(HORIZON):
        with torch.no_grad():
            dist = torch.distributions.Categorical(logits=actor(state))
            a = dist.sample()
            obs.append(state)
            acts.append(a)
            logps.append(dist.log_prob(a))
            vals.append(critic(state).squeeze(-1))
        state, r, d, age = env_step(state, a, age)
        rews.append(r)
        dones.append(d)
        t += 1

    # ---- advantages
    with torch.no_grad():
        next_value = critic(state).squeeze(-1)
    adv = [None] * HORIZON
    running = torch.zeros(N_ENVS)
    for t in reversed(range(HORIZON)):
        alive = 1.0 - dones[t]
        delta = rews[t] + GAMMA * next_value * alive - vals[t]
        running = delta + GAMMA * LAM * alive * running
        adv[t] = running
        next_value = vals[t]
    adv = torch.stack(adv).flatten()
    ret = adv + torch.stack(vals).flatten()
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    b_obs = torch.cat(obs)
    b_act = torch.cat(acts)
    b_logp = torch.cat(logps)

    # ---- update
    for _ in range(K_EPOCHS):
        for idx in torch.randperm(len(b_obs)).split(MINIBATCH):
            dist = torch.distributions.Categorical(logits=actor(b_obs[idx]))
            ratio = (dist.log_prob(b_act[idx]) - b_logp[idx]).exp()
            surr = torch.min(ratio * adv[idx], ratio.clamp(1 - CLIP, 1 + CLIP) * adv[idx])
            v_loss = (critic(b_obs[idx]).squeeze(-1) - ret[idx]).pow(2).mean()
            loss = -surr.mean() + 0.5 * v_loss - 0.003 * dist.entropy().mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(actor.parameters(), 0.5)
            opt.step()

    history.append(torch.stack(rews).mean().item())
    if len(history) % 10 == 0:
        print(f"rollouts {len(history):4d}   mean reward {sum(history[-10:]) / 10:7.3f}", flush=True)

print("first ten %.3f, last ten %.3f" % (sum(history[:10]) / 10, sum(history[-10:]) / 10))
