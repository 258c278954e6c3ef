"""Weights between PyTorch and postgrad, both ways.

    python3 scripts/golden/weights.py          writes packages/nn/golden/torch.safetensors (a model's state dict), torch-dtypes.safetensors (every
                                               dtype that torch 1.13 has), torch-adam.safetensors (an optimizer's state in the middle of a training) and
                                               weights.json (the model's input and output, the dtypes' values, how training continues)
    python3 scripts/golden/weights.py --check  reads packages/nn/golden/postgrad.safetensors and postgrad-adam.safetensors, which weights.mjs has
                                               written, with PyTorch: the model must give the output, and training continue, as in weights-here.json

Run with PyTorch 1.13 (Debian 12's python3-torch). There is no package `safetensors` there, so the format is read and written by hand below.
"""
import json
import math
import pathlib
import struct
import sys

import numpy
import torch
import torch.nn as nn

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "packages/nn/golden"
DTYPES = {torch.float64: "F64", torch.int64: "I64", torch.float32: "F32", torch.int32: "I32", torch.bfloat16: "BF16", torch.float16: "F16",
          torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}
NUMPY = {"F64": "<f8", "I64": "<i8", "F32": "<f4", "I32": "<i4", "BF16": "<i2", "F16": "<f2", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?"}
ALIGNED = list(DTYPES.values())


def raw(t):
    t = t.detach().contiguous()
    return (t.view(torch.int16) if t.dtype == torch.bfloat16 else t).numpy().tobytes()


def save(tensors, path, metadata=None):
    """The order and the padding of the reference implementation."""
    header, data = ({} if metadata is None else {"__metadata__": metadata}), b""
    for name, t in sorted(tensors.items(), key=lambda item: (ALIGNED.index(DTYPES[item[1].dtype]), item[0])):
        begin, data = len(data), data + raw(t)
        header[name] = {"dtype": DTYPES[t.dtype], "shape": list(t.shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def load(path):
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header, tensors = json.loads(content[8:8 + length]), {}
    metadata = header.pop("__metadata__", None)
    for name, info in header.items():
        begin, end = (8 + length + at for at in info["data_offsets"])
        array = numpy.frombuffer(content[begin:end], NUMPY[info["dtype"]]).reshape(info["shape"]).copy()
        tensors[name] = torch.from_numpy(array)
    return tensors, metadata


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Embedding(6, 3)
        self.rnn = nn.LSTM(3, 4, num_layers=2)
        self.decoder = nn.Linear(4, 2)

    def forward(self, indices):
        return self.decoder(self.rnn(self.encoder(indices))[0])


# The small net of optim.py, and where it began.
SMALL = json.loads((GOLDEN / "optim.json").read_text())
ADAM = [{"lr": 0.02, "amsgrad": True}, {"lr": 0.01, "weight_decay": 0.1, "betas": (0.8, 0.99)}]


class Training:
    """As `Training` in optim/small-net.suite.ts, with Adam over a group for each layer, in float64."""

    def __init__(self, weights):
        self.net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()
        nn.utils.vector_to_parameters(torch.tensor(weights, dtype=torch.float64), self.net.parameters())
        layers = (self.net[0], self.net[2])
        self.opt = torch.optim.Adam([{"params": layer.parameters(), **settings} for layer, settings in zip(layers, ADAM)])
        self.x = torch.tensor(SMALL["x"], dtype=torch.float64).reshape(4, 2)
        self.y = torch.tensor(SMALL["y"], dtype=torch.float64).reshape(4, 1)

    def steps(self, n):
        for _ in range(n):
            self.opt.zero_grad()
            ((self.net(self.x) - self.y) ** 2).mean().backward()
            self.opt.step()
        return nn.utils.parameters_to_vector(self.net.parameters()).tolist()


INDICES = [[0, 5], [3, 3], [1, 2], [4, 0]]


def plain(x):
    return x if isinstance(x, (int, bool)) or math.isfinite(x) else str(x)


def write():
    torch.manual_seed(5)
    model = Model()
    save(model.state_dict(), GOLDEN / "torch.safetensors", {"format": "pt"})
    float_values = [0.0, -0.0, 1.0, -2.5, 65504.0, 2.0**-24, -(2.0**-14), 0.1, math.inf, -math.inf, math.nan]
    dtypes = {
        "half": torch.tensor(float_values, dtype=torch.float16),
        "brain": torch.tensor(float_values + [1e-40, 3e38], dtype=torch.bfloat16),
        "single": torch.tensor(float_values + [1e-45], dtype=torch.float32),
        "double": torch.tensor([[0.1, 5e-324], [math.nan, 1e308]], dtype=torch.float64),
        "long": torch.tensor([-(2**31), 2**31 - 1, 0, -1]),
        "int": torch.tensor([[-(2**31)], [2**31 - 1]], dtype=torch.int32),
        "short": torch.tensor([-32768, 32767, 5], dtype=torch.int16),
        "char": torch.tensor([-128, 127], dtype=torch.int8),
        "byte": torch.tensor([0, 255, 7], dtype=torch.uint8),
        "flags": torch.tensor([[True, False, True]]),
        "scalar": torch.tensor(1.5),
        "nothing": torch.zeros(0, 3),
        "naïve, 名": torch.tensor([1.0]),
    }
    save(dtypes, GOLDEN / "torch-dtypes.safetensors")
    values = {n: {"shape": list(t.shape), "values": [plain(v) for v in t.flatten().tolist()]} for n, t in dtypes.items()}
    with torch.no_grad():
        output = model(torch.tensor(INDICES))
    training = Training(SMALL["start"])
    middle = training.steps(5)
    state = training.opt.state_dict()
    tensors = {f"state.{place}.{name}": t for place, entries in state["state"].items() for name, t in entries.items()}
    save(tensors, GOLDEN / "torch-adam.safetensors", {"param_groups": json.dumps(state["param_groups"])})
    text = {"torch": torch.__version__, "indices": INDICES, "output": output.flatten().tolist(), "dtypes": values, "middle": middle, "end": training.steps(5)}
    (GOLDEN / "weights.json").write_text(json.dumps(text, separators=(",", ":")) + "\n")
    print(f"{len(model.state_dict())} parameters and {len(dtypes)} dtypes -> {GOLDEN}")


def check():
    expected = json.loads((GOLDEN / "weights-here.json").read_text())
    tensors, metadata = load(GOLDEN / "postgrad.safetensors")
    assert metadata == expected["metadata"], metadata
    model = Model()
    model.load_state_dict(tensors)
    with torch.no_grad():
        output = model(torch.tensor(expected["indices"])).flatten()
    error = (output - torch.tensor(expected["output"])).abs().max().item()
    assert error < 1e-6, error
    check_training(expected)
    print(f"{len(tensors)} parameters written by postgrad give its output in PyTorch {torch.__version__}; greatest difference {error:.1e}")


def check_training(expected):
    """As the docstring of optim/torch-state.ts says."""
    tensors, metadata = load(GOLDEN / "postgrad-adam.safetensors")
    state = {}
    for key, t in tensors.items():
        _, place, name = key.split(".")
        state.setdefault(int(place), {})[name] = t
    training = Training(expected["middle"])
    training.opt.load_state_dict({"state": state, "param_groups": json.loads(metadata["param_groups"])})
    error = max(abs(a - b) for a, b in zip(training.steps(5), expected["end"]))
    assert error < 1e-12, error
    print(f"an optimizer's state written by postgrad goes on in PyTorch; greatest difference {error:.1e}")


check() if "--check" in sys.argv else write()
