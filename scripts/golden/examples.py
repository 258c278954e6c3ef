"""Golden losses of the examples from PyTorch: the same initial weights, the same batches, some steps of the same optimizer, in float64 (what is random
is rounded to float32 first, so that it is the same number there). Compared in apps/examples/src/rnn and mlp.

Run with any PyTorch >= 1.13:  python3 scripts/golden/examples.py   (writes apps/examples/golden/rnn.json and mlp.json)
"""
import json
import pathlib

import torch
import torch.nn as nn
import torch.nn.functional as F

OUT = pathlib.Path(__file__).resolve().parents[2] / "apps/examples/golden"
STEPS = 10
torch.manual_seed(5)


def rounded(module):
    for parameter in module.parameters():
        parameter.data = parameter.data.round(decimals=4)
    return module.double()


def dump(t):
    return {"shape": list(t.shape), "values": [float(f"{x:.8g}") for x in t.detach().flatten().tolist()]}


def state(module):
    return {name: dump(t) for name, t in module.state_dict().items()}


def write(name, content):
    OUT.mkdir(exist_ok=True)
    lines = ",\n".join(f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'))}" for key, value in content.items())
    (OUT / f"{name}.json").write_text("{\n" + lines + "\n}\n")


def train(parameters, optimizer, loss_of, batches):
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(*batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def rnn(tones=7, embedding=2, hidden=3, layers=4, length=6, batch=5):
    """The sizes of PyTorch's example, which has its decoder's output at every step."""
    encoder, core, decoder = (rounded(m) for m in (nn.Embedding(tones, embedding), nn.LSTM(embedding, hidden, layers), nn.Linear(hidden, tones)))
    start = {"encoder": state(encoder), "core": state(core), "decoder": state(decoder)}
    batches = [(torch.randint(tones, (length, batch)), torch.randint(tones, (length * batch,))) for _ in range(STEPS)]
    parameters = [*encoder.parameters(), *core.parameters(), *decoder.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.5, momentum=0.9)
    losses = train(parameters, optimizer, lambda x, y: F.cross_entropy(decoder(core(encoder(x))[0]).reshape(-1, tones), y), batches)
    write("rnn", {
        "by": "scripts/golden/examples.py", "torch": torch.__version__, "sizes": {"embedding": embedding, "hidden": hidden, "layers": layers}, "lr": 0.5,
        **start, "batches": [{"input": dump(x), "target": dump(y)} for x, y in batches], "losses": losses,
    })
    print(losses)


def mlp(hidden=8, arms=3, count=24):
    layers = [rounded(nn.Linear(2, hidden)), rounded(nn.Linear(hidden, hidden)), rounded(nn.Linear(hidden, arms))]
    start = [state(layer) for layer in layers]
    points, labels = torch.randn(count, 2).round(decimals=4).double(), torch.randint(arms, (count,))
    parameters = [p for layer in layers for p in layer.parameters()]

    def loss_of(points, labels):
        return F.cross_entropy(layers[2](torch.tanh(layers[1](torch.tanh(layers[0](points))))), labels)

    losses = train(parameters, torch.optim.Adam(parameters, lr=0.05), loss_of, [(points, labels)] * STEPS)
    write("mlp", {
        "by": "scripts/golden/examples.py", "torch": torch.__version__, "hidden": hidden, "lr": 0.05, "layers": start, "points": dump(points),
        "labels": dump(labels), "losses": losses,
    })
    print(losses)


rnn()
mlp()
