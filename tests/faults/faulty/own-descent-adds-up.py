"""Which loans are paid back: logistic regression written with plain tensors."""

import torch

torch.manual_seed(2)
features = torch.randn(4000, 12)
paid = (features @ torch.randn(12) + 0.5 * torch.randn(4000) > 0).float()
weight = torch.zeros(12, requires_grad=True)
bias = torch.zeros(1, requires_grad=True)

for epoch in range(30):
    total = 0.0
    for rows in torch.randperm(4000).split(50):
        score = features[rows] @ weight + bias
        loss = torch.nn.functional.binary_cross_entropy_with_logits(score, paid[rows])
        loss.backward()
        with torch.no_grad():
            weight -= 0.5 * weight.grad
            bias -= 0.5 * bias.grad
        total += loss.item()
    print(f"epoch {epoch}: loss {total / 80:.4f}")
