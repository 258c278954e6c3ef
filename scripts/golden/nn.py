"""Golden values from PyTorch for packages/nn: outputs, gradients and optimizer steps, compared in src/golden.test.ts.

Run with any PyTorch >= 1.13:  python3 scripts/golden/nn.py   (writes packages/nn/golden/nn.json)
"""
import json
import pathlib

import torch
import torch.nn as nn
import torch.nn.functional as F

OUT = pathlib.Path(__file__).resolve().parents[2] / "packages/nn/golden/nn.json"
torch.manual_seed(2)


def dump(t):
    return {"shape": list(t.shape), "values": t.detach().flatten().tolist()}


def dumps(named):
    return {name: dump(t) for name, t in named}


def module_case(name, module, inputs, tensors_of=lambda y: [y]):
    """Outputs, and the gradients of a weighted sum of them for all parameters and floating point inputs."""
    module = module.double()
    state = dumps(module.state_dict().items())
    outputs = tensors_of(module(*inputs))
    weights = [torch.randn_like(y) for y in outputs]
    sum((y * w).sum() for y, w in zip(outputs, weights)).backward()
    return {
        "name": name,
        "state": state,
        "inputs": [dump(x) for x in flat(inputs)],
        "outputs": [dump(y) for y in outputs],
        "weights": [dump(w) for w in weights],
        "gradients": dumps((n, p.grad) for n, p in module.named_parameters()),
        "inputGradients": [dump(x.grad) if x.requires_grad else None for x in flat(inputs)],
    }


def flat(inputs):
    return [x for each in inputs for x in (each if isinstance(each, tuple) else (each,))]


def x(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def rnn_outputs(y):
    return [y[0], y[1][0], y[1][1]]


MODULES = [
    module_case("linear", nn.Linear(4, 3), [x(2, 4)]),
    module_case("linear without bias, batched", nn.Linear(4, 3, bias=False), [x(2, 3, 4)]),
    module_case("embedding", nn.Embedding(6, 3), [torch.tensor([[1, 5, 1], [0, 2, 5]])]),
    module_case("lstm of two layers with a state", nn.LSTM(3, 4, 2), [x(5, 2, 3), (x(2, 2, 4), x(2, 2, 4))], rnn_outputs),
    module_case("lstm, batch first, without bias", nn.LSTM(2, 3, bias=False, batch_first=True), [x(2, 4, 2)], rnn_outputs),
    module_case("sequential", nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2), nn.LogSoftmax(1)), [x(3, 3)]),
]


def loss_case(name, fn, a, target):
    y = fn(a, target)
    w = torch.randn_like(y)
    (grad,) = torch.autograd.grad((y * w).sum(), a)
    return {"name": name, "input": dump(a), "target": dump(target), "output": dump(y), "weights": dump(w), "gradient": dump(grad)}


CLASSES = torch.tensor([2, 0, 2, 1])
LOSSES = [
    *[loss_case(f"crossEntropy {r}", lambda a, t, r=r: F.cross_entropy(a, t, reduction=r), x(4, 3), CLASSES) for r in ("mean", "sum", "none")],
    *[loss_case(f"mseLoss {r}", lambda a, t, r=r: F.mse_loss(a, t, reduction=r), x(2, 3), x(2, 3).detach()) for r in ("mean", "sum", "none")],
]


def sgd_case(name, settings, clip=None):
    """20 steps of a small classifier; the losses on the way and the parameters at the end."""
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    start = dumps(model.state_dict().items())
    data, target = x(4, 3).detach(), CLASSES
    opt = torch.optim.SGD(model.parameters(), **settings)
    losses = []
    for _ in range(20):
        opt.zero_grad()
        loss = F.cross_entropy(model(data), target)
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        opt.step()
        losses.append(loss.item())
    names = {"weight_decay": "weightDecay"}
    return {
        "name": name,
        "settings": {names.get(k, k): v for k, v in settings.items()},
        "clip": clip,
        "start": start,
        "data": dump(data),
        "losses": losses,
        "end": dumps(model.state_dict().items()),
    }


SGD = [
    sgd_case("plain", {"lr": 0.3}),
    sgd_case("momentum", {"lr": 0.1, "momentum": 0.9}),
    sgd_case("momentum with dampening", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    sgd_case("weight decay", {"lr": 0.2, "weight_decay": 0.05}),
    sgd_case("nesterov with weight decay", {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.01}),
    sgd_case("clipped", {"lr": 0.5, "momentum": 0.5}, clip=0.25),
]

OUT.parent.mkdir(exist_ok=True)
line = lambda c: json.dumps(c, separators=(",", ":"))
groups = ",\n".join(f'"{k}":[\n' + ",\n".join(map(line, v)) + "\n]" for k, v in [("modules", MODULES), ("losses", LOSSES), ("sgd", SGD)])
OUT.write_text(f'{{"torch":"{torch.__version__}",\n{groups}}}\n')
print(f"{len(MODULES)} modules, {len(LOSSES)} losses, {len(SGD)} runs -> {OUT}")
