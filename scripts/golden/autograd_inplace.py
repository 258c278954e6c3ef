"""Golden gradients through in-place operations, from PyTorch, for packages/autograd: each graph below has its twin of the same name in
src/in-place.test.ts. Run with any PyTorch >= 1.13:  python3 scripts/golden/autograd_inplace.py   (writes packages/autograd/golden/inplace.json)
"""
import torch

from graphs import graph, write


@graph((2, 3), (3,))
def arithmetic(x, y):
    h = x * 2
    h.add_(y, alpha=0.5).mul_(y).sub_(x, alpha=-2).div_(y.exp())
    return (h * h).sum()


@graph((5,))
def functions(x):
    h = (((((x * 1.5).sin_() * 1).exp_() + 1).sqrt_()) * 2).log_().neg_()
    g = ((x + 1).tanh_() * 2).sigmoid_() + 1
    g.pow_(3)
    return (h * g + (x - 0.1).relu_() * h + (x * 2).clamp_(-0.7, 0.9).abs_() * g + (x * 3).cos_()).sum()


@graph((3, 2), (2,))
def rows_of_zeros(x, w):
    out = torch.zeros(3, 2, dtype=torch.float64)
    for i in range(3):
        out[i].copy_(x[i] * w)
        out[i].mul_(w)
    return (out * out).sum()


@graph((3, 4), (3,))
def view_of_result(x, y):
    h = x * x
    h[:, 1].mul_(y)
    h.t()[2].copy_(y * y)
    h.view(12)[3:5].zero_()
    return (h * x).sum()


@graph((2, 3), (3,))
def live_view(x, y):
    h = x * 2
    row, column = h[0], h.t()[1]
    h.mul_(y)
    before = (row * 2).sum()
    row.add_(y)
    h.exp_()
    return before + (row * y).sum() + (column * column).sum() + h.sum()


@graph((4,), (4,))
def chain_of_views(x, y):
    h = x.sin()
    v = h.view(2, 2).t().unsqueeze(0)[0, 1]
    v.mul_(y[:2])
    v.narrow(0, 0, 1).sin_()
    return (h * y).sum() + (v**2).sum()


@graph((3,), (3,))
def read_then_written(x, y):
    h = x * y
    early = h + 1
    h.mul_(early)
    return (h * early).sum()


@graph((3,))
def overwritten(x):
    h = x * 2
    h.fill_(3)
    g = x * x
    g[:2].fill_(5)
    return (h * x + g * x).sum()


@graph((2, 3), (3,))
def copied_with_broadcast(x, y):
    h = x * 2
    h.copy_(y)
    k = x * 3
    k[0].copy_(y[1])
    return (h * x).sum() + (k * k).sum()


@graph((3,), (3,))
def detached_alias(x, y):
    h = x * 2
    h.detach().mul_(3)
    g = torch.zeros(3, dtype=torch.float64)
    view = g[1:]
    g.add_(y)
    return (h * y).sum() + (view * view * h[1:]).sum()


write("inplace")
