"""Golden gradients from PyTorch for packages/autograd: each graph below has its twin of the same name in src/golden.test.ts.

Run with any PyTorch >= 1.13:  python3 scripts/golden/autograd.py   (writes packages/autograd/golden/graphs.json)
"""
import torch
import torch.nn.functional as F

from graphs import graph, write


@graph((3, 3), (3, 3), (3, 3))
def design_note(t1, t2, t4):
    return ((t1 + t2) * t4).sum()


@graph((4, 3), (5, 3), (5,), (2, 5))
def two_layers(x, w1, b, w2):
    return F.cross_entropy(torch.tanh(x @ w1.T + b) @ w2.T, torch.tensor([0, 1, 1, 0]))


@graph((2, 3))
def used_twice(x):
    y = x * x
    return (y.exp() * y + y.sin() / (y + 1)).sum()


@graph((3, 4))
def views(x):
    y = x.t().reshape(2, 6)[:, 1:4]
    return (y.permute(1, 0).unsqueeze(1).expand(3, 2, 2) * x.view(-1)[:12].reshape(3, 2, 2)).sum()


@graph((2, 3), (1, 3), (2, 1))
def joins(a, b, c):
    y = torch.cat([a, b, c.expand(2, 3)], 0)
    return (torch.stack([y, y.flip(0) * 0 + y * 2], 1) ** 2).mean()


@graph((2, 4), (4,), (1, 4))
def layer_norm(x, gain, bias):
    mean = x.mean(1, keepdim=True)
    var = ((x - mean) ** 2).mean(-1, keepdim=True)
    return ((x - mean) / (var + 1e-5).sqrt() * gain + bias).abs().amax(1).sum()


@graph((2, 2, 3), (2, 2, 3), (2, 2, 3))
def attention(q, k, v):
    scores = (q @ k.transpose(-2, -1) / 3**0.5).softmax(-1)
    return ((scores @ v).sigmoid().log()).mean()


@graph((5, 3), (3, 2))
def embeds(table, w):
    at = torch.tensor([[1, 4, 1], [0, 1, 3]])
    return F.nll_loss(F.log_softmax(F.embedding(at, table).mean(1) @ w, 1), torch.tensor([1, 0]), reduction="sum")


@graph((3, 3), (3,))
def choices(a, b):
    y = torch.where(a > b, a * 2, b - a)
    return (torch.maximum(y, a) * torch.minimum(y, b).clamp(-0.4, 0.6) + F.relu(a - 0.1)).sum()


@graph((2, 3), (3,), (3, 2, 2))
def vectors(m, v, batch):
    return ((m @ v) @ batch).cos().sum() + torch.bmm(batch, batch).mean() + v @ v


@graph((4,))
def long_chain(x):
    y = x
    for i in range(50):
        y = (y * 0.9 + x.sin() * (0.01 * i)).tanh()
    return y.sum()


write("graphs")
