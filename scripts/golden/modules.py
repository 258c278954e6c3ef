"""Golden values of modules for packages/nn, compared in src/modules.golden.test.ts: for each of them, from given weights, the outputs and the
gradients of inputs, parameters and, in training, what became of the buffers.

Run with any PyTorch >= 1.13:  python3 scripts/golden/modules.py   (writes packages/nn/golden/modules.json)

Weights and inputs follow from a formula (`fill`), which the test has too, so that the file holds only results. All are multiples of 1/64, exact in
float32; the values are computed in float64. "make" is the constructor as the test calls it: name and arguments, options in camelCase.
"""
import json
import pathlib

import torch
import torch.nn as nn
import torch.nn.functional as F

OUT = pathlib.Path(__file__).resolve().parents[2] / "packages/nn/golden/modules.json"
cases = []


def fill(shape, salt, positive=False):
    n = 1
    for extent in shape:
        n *= extent
    values = [(((i * 37 + salt * 29) % 101) - 50) / 64 for i in range(n)]
    if positive:
        values = [abs(v) + 0.5 for v in values]
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


def load(module):
    """The k-th entry of the state dict is fill(shape, k); variances are positive, counts stay."""
    state = module.state_dict()
    for k, (name, value) in enumerate(state.items()):
        if torch.is_floating_point(value):
            state[name] = fill(list(value.shape), k, positive="running_var" in name)
    module.load_state_dict(state)


def dump(t):
    if t is None:
        return None
    # 16 digits: what 1e-12 needs, with room.
    values = [int(v) if float(v) == int(v) and abs(v) < 1e6 else float(f"{v:.15g}") for v in t.detach().reshape(-1).tolist()]
    return {"shape": list(t.shape), "values": values}


def flat(y):
    if y is None or isinstance(y, torch.Tensor):
        return [] if y is None else [y]
    return [t for each in y for t in flat(each)]


def weights(t):
    w = [((i * 7) % 11 - 5.5) / 4 for i in range(t.numel())]
    return torch.tensor(w, dtype=t.dtype).reshape(t.shape)


def ints(shape, below, salt=0):
    n = 1
    for extent in shape:
        n *= extent
    return torch.tensor([(i * 5 + salt * 3 + 1) % below for i in range(n)]).reshape(shape)


def case(label, make, module, inputs, call=None, train=False):
    """inputs: shapes (filled by place from salt 50 on), tensors of indices or booleans, or None. call(module, *inputs) if it is not module(*inputs)."""
    module = module.double()
    load(module)
    module.train(train)
    made, described = [], []
    for k, each in enumerate(inputs):
        if isinstance(each, torch.Tensor):
            made.append(each)
            kind = "bool" if each.dtype == torch.bool else "int32"
            described.append({"t": kind, "shape": list(each.shape), "values": [int(v) for v in each.reshape(-1).tolist()]})
        else:
            made.append(fill(each, 50 + k).requires_grad_())
            described.append({"shape": each})
    before = {name: b.clone() for name, b in module.named_buffers()}
    outputs = flat((call or (lambda m, *a: m(*a)))(module, *made))
    differentiable = [y for y in outputs if y.requires_grad]
    if differentiable:
        sum((y * weights(y)).sum() for y in differentiable).backward()
    entry = {
        "label": label,
        "make": make,
        "train": train,
        "state": {name: list(v.shape) for name, v in module.state_dict().items()},
        "inputs": described,
        "outputs": [dump(y) for y in outputs],
        "inputGradients": [dump(x.grad) if torch.is_floating_point(x) else None for x in made],
        "gradients": {name: dump(p.grad) for name, p in module.named_parameters()},
    }
    changed = {name: dump(b) for name, b in module.named_buffers() if not torch.equal(b, before[name])}
    if changed:
        entry["buffers"] = changed
    cases.append(entry)


def snake(name):
    return "".join("_" + c.lower() if c.isupper() else c for c in name)


VALUES = {"fanIn": "fan_in"}


def simple(label, name, args, inputs, options=None, train=False, call=None):
    """Of a class whose arguments are PyTorch's, in camelCase."""
    options = options or {}
    kwargs = {snake(k): v for k, v in options.items()}
    module = getattr(nn, name)(*args, **kwargs)
    make = [name, *args, *([options] if options else [])]
    case(f"{name}: {label}", make, module, inputs, call, train)


# Linear and shapes
simple("a vector", "Linear", [4, 3], [[4]])
simple("batched, without bias", "Linear", [4, 3], [[2, 3, 4]], {"bias": False})
case("Flatten", ["Flatten"], nn.Flatten(), [[2, 3, 2]])
case("Unflatten", ["Unflatten", 1, [2, 3]], nn.Unflatten(1, (2, 3)), [[2, 6]])

# Convolutions
simple("defaults", "Conv1d", [2, 3, 3], [[2, 2, 7]])
simple("all options", "Conv1d", [4, 2, 2], [[2, 4, 7]], {"stride": 2, "padding": 1, "dilation": 2, "groups": 2, "bias": False})
simple("same", "Conv1d", [1, 2, 4], [[1, 1, 5]], {"padding": "same"})
simple("defaults, one image", "Conv2d", [2, 3, 3], [[2, 5, 4]])
simple("pairs and groups", "Conv2d", [2, 4, [2, 3]], [[2, 2, 5, 6]], {"stride": [2, 1], "padding": [1, 2], "dilation": [1, 2], "groups": 2})
simple("reflect", "Conv2d", [1, 2, 3], [[1, 1, 4, 5]], {"padding": [1, 2], "paddingMode": "reflect"})
simple("circular, same", "Conv2d", [1, 1, [2, 3]], [[1, 1, 3, 4]], {"padding": "same", "paddingMode": "circular"})
simple("replicate", "Conv1d", [1, 2, 3], [[1, 1, 4]], {"padding": 2, "paddingMode": "replicate"})
simple("defaults", "ConvTranspose1d", [2, 3, 3], [[2, 2, 4]])
simple("options", "ConvTranspose2d", [4, 2, [3, 2]], [[1, 4, 3, 2]], {"stride": [2, 3], "padding": [1, 0], "outputPadding": [1, 2], "groups": 2, "dilation": [1, 2]})

# Embedding
simple("", "Embedding", [6, 3], [torch.tensor([[1, 5, 1], [0, 2, 5]])])
simple("a padding", "Embedding", [5, 2], [torch.tensor([4, 0, 3, 4])], {"paddingIdx": -1})

# Activations
for name, args in [("ReLU", []), ("ReLU6", []), ("LeakyReLU", [0.2]), ("ELU", [1.5]), ("GELU", []), ("SiLU", []), ("Mish", []), ("Softsign", []), ("Sigmoid", []),
                   ("LogSigmoid", []), ("Tanh", []), ("Tanhshrink", []), ("Softmax", [1]), ("LogSoftmax", [0])]:
    simple("", name, args, [[3, 4]])
simple("by tanh", "GELU", [], [[3, 4]], {"approximate": "tanh"})
simple("options", "Softplus", [], [[3, 4]], {"beta": 2, "threshold": 1})
case("Hardtanh", ["Hardtanh", -0.5, 0.25], nn.Hardtanh(-0.5, 0.25), [[3, 4]])

for name, args in [("SELU", []), ("CELU", [0.5]), ("Hardswish", []), ("PReLU", [])]:
    simple("", name, args, [[3, 4]])
# By its definition: the gradient of PyTorch's own has, in float64, a sixth that was rounded to float32.
case("Hardsigmoid", ["Hardsigmoid"], nn.Hardsigmoid(), [[3, 4]], lambda m, x: F.relu6(x + 3) / 6)
case("PReLU: a slope for each channel", ["PReLU", {"numParameters": 2}], nn.PReLU(2), [[2, 2, 3]])

# Recurrent: every option
def rnn_call(lstm, batch_first=False):
    return lambda m, x, *state: m(x, *([tuple(state)] if lstm and state else state))


for name in ("RNN", "LSTM", "GRU"):
    lstm = name == "LSTM"
    states = lambda rows, n, h: [[rows, n, h]] * (2 if lstm else 1)
    simple("defaults", name, [3, 2], [[3, 2, 3]], call=rnn_call(lstm))
    simple("two layers, both directions, with a state", name, [3, 2], [[4, 2, 3], *states(4, 2, 2)], {"numLayers": 2, "bidirectional": True}, call=rnn_call(lstm))
    simple("batch first, without bias, with a state", name, [2, 3], [[2, 3, 2], *states(1, 2, 3)], {"batchFirst": True, "bias": False}, call=rnn_call(lstm))
    simple("batch first, both directions", name, [2, 2], [[2, 3, 2]], {"batchFirst": True, "bidirectional": True}, call=rnn_call(lstm))
    single = [[2, 2]] * (2 if lstm else 1)
    simple("one sequence with a state, both directions", name, [3, 2], [[3, 3], *single], {"bidirectional": True}, call=rnn_call(lstm))
    simple("one step", name, [1, 1], [[1, 1, 1]], call=rnn_call(lstm))
simple("relu", "RNN", [3, 2], [[3, 2, 3]], {"nonlinearity": "relu", "numLayers": 2})
for name in ("RNNCell", "LSTMCell", "GRUCell"):
    lstm = name == "LSTMCell"
    simple("without a state", name, [3, 2], [[2, 3]], call=rnn_call(lstm))
    simple("with a state", name, [3, 2], [[2, 3], *([[2, 2]] * (2 if lstm else 1))], call=rnn_call(lstm))
    simple("one row, without bias", name, [3, 2], [[3], *([[2]] * (2 if lstm else 1))], {"bias": False}, call=rnn_call(lstm))
simple("relu", "RNNCell", [3, 2], [[2, 3]], {"nonlinearity": "relu"})

case("Sequential", ["Sequential"], nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2), nn.LogSoftmax(1)), [[3, 3]])


# Embeddings in bags
bags = torch.tensor([4, 0, 3, 4, 1, 0])
offsets = torch.tensor([0, 2, 2])
for mode in ("sum", "mean", "max"):
    simple(mode, "EmbeddingBag", [5, 2], [ints([2, 3], 5)], {"mode": mode})
    simple(f"{mode}, offsets and a padding", "EmbeddingBag", [5, 2], [bags, offsets], {"mode": mode, "paddingIdx": 4})
simple("factors", "EmbeddingBag", [5, 2], [ints([2, 3], 5), [2, 3]], {"mode": "sum"}, call=lambda m, x, w: m(x, per_sample_weights=w))

# Pools
simple("", "MaxPool1d", [2], [[2, 3, 7]], {"stride": 1, "padding": 1, "dilation": 2})
simple("", "MaxPool2d", [2], [[1, 2, 5, 4]])
simple("pairs, upwards", "MaxPool2d", [[3, 2]], [[2, 5, 4]], {"stride": [2, 3], "padding": [1, 0], "ceilMode": True})
simple("", "AvgPool1d", [3], [[1, 2, 7]], {"stride": 2, "padding": 1})
simple("without padding in the mean", "AvgPool2d", [[3, 2]], [[1, 2, 5, 4]], {"padding": [1, 1], "countIncludePad": False, "ceilMode": True})
simple("", "AdaptiveAvgPool1d", [3], [[2, 2, 7]])
simple("", "AdaptiveAvgPool2d", [[2, 3]], [[1, 2, 5, 4]])

# Normalisation, in training and in evaluation
for train in (True, False):
    mode = "training" if train else "evaluation"
    simple(mode, "BatchNorm1d", [3], [[4, 3]], train=train)
    simple(f"{mode}, lines", "BatchNorm1d", [2], [[2, 2, 3]], {"momentum": None, "eps": 0.001}, train=train)
    simple(mode, "BatchNorm2d", [2], [[2, 2, 2, 3]], {"momentum": 0.3}, train=train)
    simple(f"{mode}, without weights", "BatchNorm2d", [2], [[2, 2, 1, 3]], {"affine": False}, train=train)
    simple(f"{mode}, without a memory", "BatchNorm2d", [2], [[1, 2, 2, 3]], {"trackRunningStats": False}, train=train)
simple("", "LayerNorm", [4], [[2, 3, 4]])
simple("two dimensions", "LayerNorm", [[2, 3]], [[2, 2, 3]], {"eps": 0.1})
simple("without weights", "LayerNorm", [3], [[2, 3]], {"elementwiseAffine": False})
simple("", "GroupNorm", [2, 4], [[2, 4, 3]])
simple("without weights", "GroupNorm", [1, 2], [[2, 2, 2, 2]], {"affine": False, "eps": 0.01})

simple("", "InstanceNorm1d", [2], [[2, 2, 3]])
simple("one image", "InstanceNorm2d", [2], [[2, 2, 3]], {"affine": True, "eps": 0.01})

# Attention
def attention(label, args, inputs, options=None, call_options=None, masks=()):
    """masks: names of call options whose tensors are the last inputs."""
    options, call_options = options or {}, call_options or {}
    kwargs = {snake(k): v for k, v in call_options.items()}

    def call(m, *given):
        q, k, v = (given[0],) * 3 if len(inputs) == 1 + len(masks) else given[:3]
        return m(q, k, v, **kwargs, **{snake(name): mask for name, mask in zip(masks, given[-len(masks):] if masks else ())})

    simple(label, "MultiheadAttention", args, inputs, options, call=call)
    cases[-1]["call"] = call_options
    cases[-1]["masks"] = list(masks)


causal = torch.ones(3, 3).triu(1).bool()
padding = torch.tensor([[False, False, True], [False, False, False]])
attention("to itself", [4, 2], [[3, 2, 4]])
attention("causal, every head's weights", [4, 2], [[3, 2, 4], causal], {}, {"averageAttnWeights": False}, ["attnMask"])
attention("padding, batch first, no weights", [4, 1], [[2, 3, 4], padding], {"batchFirst": True}, {"needWeights": False}, ["keyPaddingMask"])
attention("three inputs", [4, 2], [[2, 1, 4], [3, 1, 4], [3, 1, 4]])
attention("widths of their own, without bias", [4, 2], [[2, 2, 4], [3, 2, 3], [3, 2, 5]], {"kdim": 3, "vdim": 5, "bias": False})
attention("scores added, both masks", [2, 2], [[3, 2, 2], [4, 3, 3], padding], {}, {}, ["attnMask", "keyPaddingMask"])
attention("one sequence", [4, 2], [[2, 4], [3, 4], [3, 4]])

# A transformer's encoder, in evaluation (training without dropout is the same)
def encoder(label, args, inputs, options, masks=(), train=False):
    call = lambda m, x, *given: m(x, **{snake(name): mask for name, mask in zip(masks, given)})
    simple(label, "TransformerEncoderLayer", args, inputs, {"dimFeedforward": 3, **options}, train, call)
    cases[-1]["masks"] = list(masks)


encoder("defaults", [4, 2], [[3, 2, 4]], {})
encoder("norm first, gelu, training without dropout", [4, 2], [[2, 3, 4]], {"normFirst": True, "activation": "gelu", "batchFirst": True, "dropout": 0, "layerNormEps": 0.01}, (), True)
encoder("masks", [4, 2], [[3, 2, 4], causal, padding], {"dropout": 0}, ["srcMask", "srcKeyPaddingMask"], True)
layer = nn.TransformerEncoderLayer(4, 2, 3, 0)
case("TransformerEncoder: two layers and a norm", ["TransformerEncoder"], nn.TransformerEncoder(layer, 2, nn.LayerNorm(4)), [[3, 2, 4], causal], lambda m, x, mask: m(x, mask=mask), True)
cases[-1]["masks"] = ["mask"]

# Losses: the second input is a target, whose gradient PyTorch has as well
for reduction in ("mean", "sum", "none"):
    for name in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss"):
        simple(reduction, name, [], [[2, 3], [2, 3]], {"reduction": reduction})
simple("beta", "SmoothL1Loss", [], [[2, 3], [2, 3]], {"beta": 0.25})
simple("delta", "HuberLoss", [], [[2, 3], [2, 3]], {"delta": 0.25})
unit = torch.tensor([[0, 1, 1], [1, 0, 0]]).double()
case("BCELoss", ["BCELoss"], nn.BCELoss(), [[2, 3]], lambda m, x: m(x.sigmoid(), unit))
case("BCEWithLogitsLoss: weights", ["BCEWithLogitsLoss"], nn.BCEWithLogitsLoss(weight=torch.ones(3), pos_weight=torch.ones(3)), [[2, 3]], lambda m, x: m(x, unit))
classes = ints([4], 3)
case("NLLLoss", ["NLLLoss"], nn.NLLLoss(), [[4, 3], classes])
case("NLLLoss: class weights, one ignored, none", ["NLLLoss", {"reduction": "none", "ignoreIndex": 2}], nn.NLLLoss(torch.ones(3), reduction="none", ignore_index=2), [[4, 3], classes])
case("CrossEntropyLoss", ["CrossEntropyLoss"], nn.CrossEntropyLoss(), [[4, 3], classes])
case("CrossEntropyLoss: class weights, smoothed", ["CrossEntropyLoss", {"labelSmoothing": 0.2}], nn.CrossEntropyLoss(torch.ones(3), label_smoothing=0.2), [[4, 3], classes])
case("KLDivLoss", ["KLDivLoss", {"reduction": "batchmean", "logTarget": True}], nn.KLDivLoss(reduction="batchmean", log_target=True), [[2, 3], [2, 3]])


class Net(nn.Module):
    """A small CNN: 8 × 8 images, three classes."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(2, 3, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(3, 3)

    def forward(self, x):
        return self.head(self.body(x))


class Block(nn.Module):
    """An embedding, a transformer's layer, and a class for each position."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.layer = nn.TransformerEncoderLayer(4, 2, 6, 0, batch_first=True)
        self.head = nn.Linear(4, 7)

    def forward(self, x):
        return self.head(self.layer(self.embedding(x))).reshape(-1, 7)


def training(label, model, x, target):
    """Three steps of SGD with momentum: the losses, and the state at the end."""
    model = model.double()
    load(model)
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"label": label, "losses": losses, "state": {name: dump(v) for name, v in model.state_dict().items()}}


runs = [
    training("a small CNN", Net(), fill([4, 1, 8, 8], 50), ints([4], 3)),
    training("a transformer block", Block(), ints([2, 3], 7), ints([6], 7, 1)),
]

line = lambda c: json.dumps(c, separators=(",", ":"))
head = f'{{"by":"scripts/golden/modules.py","torch":"{torch.__version__}"'
OUT.write_text(f'{head},"runs":[\n' + ",\n".join(map(line, runs)) + '\n],"cases":[\n' + ",\n".join(map(line, cases)) + "\n]}\n")
print(f"{len(cases)} modules, {len(runs)} runs -> {OUT}")
