"""Writes packages/autograd/golden/cnn.json: ten steps of training of a small convolutional network, in float64.
Run with PyTorch 1.13 (Debian 12's python3-torch): python3 scripts/golden/cnn.py
"""
import json
import os

import torch
import torch.nn.functional as F

torch.manual_seed(7)
value = lambda *shape: (torch.randn(*shape, dtype=torch.float64) * 0.4).round(decimals=3)
plain = lambda t: {"shape": list(t.shape), "values": [float(f"{v:.15g}") for v in t.reshape(-1).tolist()]}
shapes = {"w1": (3, 1, 3, 3), "b1": (3,), "gain": (3,), "shift": (3,), "w2": (4, 3, 3, 3), "b2": (4,), "w3": (3, 16), "b3": (3,)}
start = {name: value(*shape) for name, shape in shapes.items()}
x, target = value(5, 1, 8, 8), torch.tensor([0, 2, 1, 1, 0])
params = {name: t.clone().requires_grad_() for name, t in start.items()}
mean, variance = torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
optimizer = torch.optim.SGD(params.values(), lr=0.2, momentum=0.9)


def forward(p, training):
    y = F.conv2d(x, p["w1"], p["b1"], padding=1)
    y = F.max_pool2d(F.batch_norm(y, mean, variance, p["gain"], p["shift"], training).relu(), 2)
    y = F.avg_pool2d(F.conv2d(y, p["w2"], p["b2"], padding="same").relu(), 2)
    return F.linear(y.flatten(1), p["w3"], p["b3"])


losses = []
for _ in range(10):
    optimizer.zero_grad()
    loss = F.cross_entropy(forward(params, True), target)
    loss.backward()
    optimizer.step()
    losses.append(float(f"{loss.item():.15g}"))
out = {
    "by": "scripts/golden/cnn.py", "torch": torch.__version__, "start": {name: plain(t) for name, t in start.items()}, "x": plain(x),
    "target": target.tolist(), "losses": losses, "mean": plain(mean), "variance": plain(variance), "scores": plain(forward(params, False).detach()),
}
path = os.path.join(os.path.dirname(__file__), "..", "..", "packages", "autograd", "golden", "cnn.json")
with open(path, "w") as file:
    file.write("{\n" + ",\n".join(f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))}" for k, v in out.items()) + "\n}\n")
print(losses)
