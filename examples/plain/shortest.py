import torch
from torch.nn import Linear, ReLU, Sequential, functional
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
x = torch.randn(10000, 20)
y = (x @ torch.randn(20, 5)).argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=256, shuffle=True)
model = Sequential(Linear(20, 64), ReLU(), Linear(64, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def loss(model, batch):
    x, y = batch
    return functional.cross_entropy(model(x), y)


for epoch in range(5):
    total = 0.0
    for batch in loader:
        optimizer.zero_grad()
        value = loss(model, batch)
        value.backward()
        optimizer.step()
        total += value.item()
    print(epoch + 1, total / len(loader))
