"""Semi-supervised toy: labelled and unlabelled batches side by side, updates by hand."""

from itertools import cycle

import torch


def split(data, size):
    return [data[i : i + size] for i in range(0, len(data), size)]


class Student:
    def __init__(self, inputs, classes, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.w1 = (torch.randn(inputs, 64, generator=g) * inputs**-0.5).requires_grad_()
        self.w2 = (torch.randn(64, classes, generator=g) * 64**-0.5).requires_grad_()

    def __call__(self, x):
        return torch.tanh(x @ self.w1) @ self.w2

    def update(self, loss, lr):
        grads = torch.autograd.grad(loss, [self.w1, self.w2])
        with torch.no_grad():
            for w, g in zip((self.w1, self.w2), grads):
                w -= lr * g


class SemiSupervisedTrainer:
    def __init__(self, student, labelled, unlabelled, epochs=4):
        self.student = student
        self.labelled = labelled
        self.unlabelled = unlabelled
        self.epochs = epochs

    def pairs(self):
        return zip(cycle(self.labelled), self.unlabelled)

    def fit(self):
        for epoch in range(self.epochs):
            total = 0.0
            for (x, y), u in self.pairs():
                supervised = torch.nn.functional.cross_entropy(self.student(x), y)
                guess = self.student(u).softmax(dim=1)
                noisy = self.student(u + 0.1 * torch.randn_like(u)).log_softmax(dim=1)
                consistency = -(guess.detach() * noisy).sum(dim=1).mean()
                loss = supervised + 0.3 * consistency
                self.student.update(loss, lr=0.2)
                total += loss.item()
            print(f"epoch {epoch}: summed loss {total:.2f}", flush=True)


if __name__ == "__main__":
    torch.manual_seed(1)
    centres = torch.randn(5, 20) * 2
    y = torch.randint(5, (200,))
    x = centres[y] + torch.randn(200, 20)
    u = centres[torch.randint(5, (3000,))] + torch.randn(3000, 20)
    labelled = list(zip(split(x, 20), split(y, 20)))
    SemiSupervisedTrainer(Student(20, 5), labelled, split(u, 60)).fit()
