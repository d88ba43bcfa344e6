"""Softmax regression in NumPy, without torch: anything that returns sums of gradients can be a worker."""

import motley
import numpy as np

random = np.random.default_rng(1)
x = random.normal(size=(10000, 20)).astype(np.float32)
y = (x @ random.normal(size=(20, 5))).argmax(1)


class Softmax:
    layout = [("weight", (20, 5)), ("bias", (5,))]

    def initial(self):
        return {name: np.zeros(shape, np.float32) for name, shape in self.layout}

    def load(self, weights):
        self.weights = weights

    def gradients(self, samples, sums):
        scores = x[samples] @ self.weights["weight"] + self.weights["bias"]
        p = np.exp(scores - scores.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        losses = -np.log(p[np.arange(len(samples)), y[samples]])
        p[np.arange(len(samples)), y[samples]] -= 1
        sums["weight"] += x[samples].T @ p
        sums["bias"] += p.sum(0)
        return losses.sum(), len(samples)


for epoch in motley.ArrayRun(Softmax(), len(x), optimizer="adam", lr=0.05).epochs(5):
    print(epoch.number, epoch.loss)
