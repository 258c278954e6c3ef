"""Golden graphs of packages/autograd, shared by the scripts that write packages/autograd/golden/*.json: a graph is a function of float64 inputs, with
its twin of the same name in a test there. Written are its inputs, its loss, the first derivatives and the second ones."""
import json
import pathlib

import torch

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "packages/autograd/golden"
GRAPHS = {}


def graph(*shapes):
    """Inputs of these shapes, then a function of them; all in float64, from the seed that is the graph's name."""

    def register(fn):
        GRAPHS[fn.__name__] = (shapes, fn)
        return fn

    return register


def case(name, shapes, fn):
    torch.manual_seed(sum(map(ord, name)))
    inputs = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    loss = fn(*inputs)
    first = torch.autograd.grad(loss, inputs, create_graph=True)
    # Second derivatives: of the sum of squares of the first ones.
    squares = sum((g**2).sum() for g in first)
    second = torch.autograd.grad(squares, inputs, allow_unused=True) if squares.requires_grad else [None] * len(inputs)
    dump = lambda t: [] if t is None else t.flatten().tolist()
    return {
        "name": name,
        "inputs": [{"shape": list(t.shape), "values": dump(t)} for t in inputs],
        "loss": loss.item(),
        "first": [dump(g) for g in first],
        "second": [dump(g) for g in second],
    }


def write(name):
    cases = [case(name, shapes, fn) for name, (shapes, fn) in GRAPHS.items()]
    GOLDEN.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    (GOLDEN / f"{name}.json").write_text(f'{{"torch":"{torch.__version__}","cases":[\n{lines}\n]}}\n')
    print(f"{len(cases)} graphs -> {name}.json")
