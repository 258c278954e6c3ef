"""The rows of `apps/bench/src/operations/rows.ts` in PyTorch, on as many threads as the first argument says.

Its first line names its version and its rows. Then it reads one JSON object a line on stdin, {"name": ..., "times": ...}, does that row's work so often,
and answers {"seconds": ...}.
"""
import json
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(int(sys.argv[1]))
torch.manual_seed(0)
ROWS = {}


def plain(name, f):
    def work():
        with torch.no_grad():
            f()
    ROWS[name] = work


def leaf(*shape):
    return torch.rand(*shape, requires_grad=True)


def chains(row, x):
    # PyTorch 1.13 has no torch.compile: it computes a chain operation by operation.
    def chain():
        return ((((x * 2 + 1) * x).relu() - x).abs() + 3) / x

    def gelu():
        return ((x * x * x * 0.044715 + x) * 0.7978845608).tanh().add(1) * x * 0.5
    row("chain of 8", chain)
    row("chain of 8, compiled", chain)
    row("gelu by hand", gelu)
    row("gelu by hand, compiled", gelu)


def sizes(n):
    def row(name, f):
        plain(f"{name} {n}", f)
    x, y = torch.rand(n) + 0.1, torch.rand(n) + 0.1
    mask = torch.rand(n) > 0.5
    table = torch.rand(1000, n // 1000)
    index = torch.randint(0, n, (n,))
    double, whole, none = x.double(), (x * 100).int(), torch.zeros(n).bool()
    square = torch.rand(int(n ** 0.5), int(n ** 0.5))
    classes = torch.randint(0, 10, (n // 10,))
    row("add", lambda: x + y)
    row("mul", lambda: x * y)
    row("div", lambda: x / y)
    row("exp", lambda: x.exp())
    row("log", lambda: x.log())
    row("tanh", lambda: x.tanh())
    row("sigmoid", lambda: x.sigmoid())
    row("gelu", lambda: F.gelu(x))
    row("pow2.5", lambda: x.pow(2.5))
    row("sin", lambda: x.sin())
    chains(row, x)
    row("where", lambda: torch.where(mask, x, y))
    row("gt", lambda: x > y)
    row("sum", lambda: x.sum())
    row("mean", lambda: x.mean())
    row("var", lambda: x.var())
    row("amax", lambda: x.amax())
    row("argmax", lambda: x.argmax())
    row("sum dim0", lambda: table.sum(0))
    row("sum dim1", lambda: table.sum(1))
    row("max dim1", lambda: table.max(1))
    row("softmax dim1", lambda: table.softmax(1))
    row("cumsum", lambda: x.cumsum(0))
    row("cumprod", lambda: x.cumprod(0))
    row("prod", lambda: x.prod())
    row("sort", lambda: x.sort())
    row("topk 10", lambda: x.topk(10))
    row("norm", lambda: x.norm())
    row("logSumExp", lambda: x.logsumexp(0))
    row("gather", lambda: x.gather(0, index))
    row("indexSelect", lambda: x.index_select(0, index))
    row("maskedFill", lambda: x.masked_fill(mask, 0.0))
    row("maskedSelect", lambda: x[mask])
    row("nonzero", lambda: mask.nonzero())
    row("cat", lambda: torch.cat([x, y]))
    row("transpose copy", lambda: table.t().contiguous())
    row("flip", lambda: x.flip(0))
    row("roll", lambda: x.roll(1))
    row("repeatInterleave", lambda: x.repeat_interleave(2))
    row("clone", lambda: x.clone())
    row("to float64", lambda: x.double())
    row("add_", lambda: x.add_(1e-9))
    row("clamp", lambda: x.clamp(0.2, 0.8))
    row("floor", lambda: x.floor())
    row("remainder", lambda: torch.remainder(x, 0.3))
    row("float64 exp", lambda: double.exp())
    row("float64 add", lambda: double + double)
    row("int32 add", lambda: whole + whole)
    row("int32 sum", lambda: whole.sum())
    row("bool any", lambda: none.any())
    row("tril", lambda: square.tril())
    row("oneHot", lambda: F.one_hot(classes, 10))
    row("einsum ij,ij->i", lambda: torch.einsum("ij,ij->i", table, table))
    row("rand", lambda: torch.rand(n))
    row("randn", lambda: torch.randn(n))
    row("randperm", lambda: torch.randperm(n))
    row("scatterAdd", lambda: torch.zeros(n).scatter_add_(0, index, x))
    row("dropout", lambda: F.dropout(x, 0.5))
    row("item", lambda: x[0].item())


def products():
    for n in (64, 128, 256, 512, 1024):
        def row(a, b):
            plain(f"matmul {n}", lambda: a @ b)
        row(torch.rand(n, n), torch.rand(n, n))
    a, b = torch.rand(64, 64, 64), torch.rand(64, 64, 64)
    plain("bmm 64x64x64", lambda: a @ b)
    u, v = torch.rand(3, 3), torch.rand(3, 3)
    plain("add 3x3", lambda: u + v)


def backward(name, f, leaves):
    y = f()
    w = torch.ones_like(y)
    ROWS[f"{name} backward"] = lambda: torch.autograd.grad(y, leaves, w, retain_graph=True)


def both(name, f, leaves):
    def work():
        for x in leaves:
            x.grad = None
        f().sum().backward()
    ROWS[f"{name} forward"] = f
    backward(name, f, leaves)
    ROWS[f"{name} both"] = work


def gradients(n):
    x, y = (torch.rand(n) + 0.1).requires_grad_(), (torch.rand(n) + 0.1).requires_grad_()
    mask = torch.rand(n) > 0.5
    index = torch.randint(0, n, (n,))
    table = leaf(1000, n // 1000)

    def row(name, f, leaves=None):
        backward(f"{name} {n}", f, leaves or [x])
    row("mul", lambda: x * y, [x, y])
    row("div", lambda: x / y, [x, y])
    row("exp", lambda: x.exp())
    row("log", lambda: x.log())
    row("tanh", lambda: x.tanh())
    row("sigmoid", lambda: x.sigmoid())
    row("gelu", lambda: F.gelu(x))
    row("silu", lambda: F.silu(x))
    row("relu", lambda: x.relu())
    row("pow2.5", lambda: x.pow(2.5))
    row("sin", lambda: x.sin())
    chains(row, x)
    row("where", lambda: torch.where(mask, x, y), [x, y])
    row("maximum", lambda: torch.maximum(x, y), [x, y])
    row("sum", lambda: x.sum())
    row("mean", lambda: x.mean())
    row("var", lambda: x.var())
    row("amax", lambda: x.amax())
    row("sum dim1", lambda: table.sum(1), [table])
    row("max dim1", lambda: table.max(1)[0], [table])
    row("softmax dim1", lambda: table.softmax(1), [table])
    row("logSoftmax dim1", lambda: table.log_softmax(1), [table])
    row("cumsum", lambda: x.cumsum(0))
    row("norm", lambda: x.norm())
    row("logSumExp", lambda: x.logsumexp(0))
    row("sort", lambda: x.sort()[0])
    row("topk 10", lambda: x.topk(10)[0])
    row("gather", lambda: x.gather(0, index))
    row("indexSelect", lambda: x.index_select(0, index))
    row("maskedFill", lambda: x.masked_fill(mask, 0.0))
    row("cat", lambda: torch.cat([x, y]), [x, y])
    row("flip", lambda: x.flip(0))
    row("clamp", lambda: x.clamp(0.2, 0.8))
    row("dropout", lambda: F.dropout(x, 0.5))
    row("expand", lambda: x.unsqueeze(0).expand(4, n))


def layers():
    image = leaf(8, 16, 32, 32)
    conv = nn.Conv2d(16, 32, 3, padding=1)
    both("conv2d 8x16x32x32 3x3 32", lambda: conv(image), [image, *conv.parameters()])
    conv1 = nn.Conv1d(16, 32, 5)
    line = leaf(8, 16, 256)
    both("conv1d 8x16x256 k5", lambda: conv1(line), [line, *conv1.parameters()])
    transposed = nn.ConvTranspose2d(16, 8, 4, 2, 1)
    both("convTranspose2d", lambda: transposed(image), [image, *transposed.parameters()])
    both("maxPool2d", lambda: F.max_pool2d(image, 2), [image])
    batch_norm = nn.BatchNorm2d(16)
    both("batchNorm2d", lambda: batch_norm(image), [image, *batch_norm.parameters()])
    layer_norm = nn.LayerNorm(128)
    words = leaf(64, 32, 128)
    both("layerNorm", lambda: layer_norm(words), [words, *layer_norm.parameters()])
    lstm = nn.LSTM(32, 64)
    gru = nn.GRU(32, 64)
    series = leaf(32, 16, 32)
    both("LSTM T32 N16 H64", lambda: lstm(series)[0], [series, *lstm.parameters()])
    both("GRU T32 N16 H64", lambda: gru(series)[0], [series, *gru.parameters()])
    tokens = leaf(8, 64, 64)
    attention = nn.MultiheadAttention(64, 4, batch_first=True)
    both("MultiheadAttention N8 L64 E64 h4", lambda: attention(tokens, tokens, tokens)[0], [tokens, *attention.parameters()])
    encoder = nn.TransformerEncoderLayer(64, 4, 128, 0.0, batch_first=True)
    both("TransformerEncoderLayer", lambda: encoder(tokens), [tokens, *encoder.parameters()])
    embedding = nn.Embedding(10000, 64)
    ids = torch.randint(0, 10000, (64, 32))
    both("embedding 10000x64", lambda: embedding(ids), list(embedding.parameters()))
    logits = leaf(256, 1000)
    target = torch.randint(0, 1000, (256,))
    both("crossEntropy 256x1000", lambda: F.cross_entropy(logits, target), [logits])
    mlp = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    digits = torch.rand(64, 784)
    both("mlp 784-256-128-10 batch 64", lambda: mlp(digits), list(mlp.parameters()))
    mlp(digits).sum().backward()
    adam = torch.optim.Adam(mlp.parameters())
    ROWS["Adam step of the mlp"] = lambda: adam.step()
    policy = nn.Sequential(nn.Linear(4, 128), nn.Tanh(), nn.Linear(128, 2))
    observation, action = torch.rand(1, 4), torch.randint(0, 2, (1,))

    def act():
        for p in policy.parameters():
            p.grad = None
        F.cross_entropy(policy(observation), action).backward()
    ROWS["policy 4-128-2 batch 1 both"] = act


def matrices():
    x = leaf(300, 300)
    index = torch.randint(0, 300, (500,))
    image = leaf(8, 16, 32, 32)
    both("prod dim1 300x300", lambda: x.prod(1), [x])
    both("cumprod dim1 300x300", lambda: x.cumprod(1), [x])
    both("std dim1 300x300", lambda: x.std(1), [x])
    both("sort dim1 300x300", lambda: x.sort(1)[0], [x])
    both("index 500 of 300x300", lambda: x[index], [x])
    both("pad reflect", lambda: F.pad(image, (2, 2, 2, 2), mode="reflect"), [image])
    both("where and maximum", lambda: torch.maximum(torch.where(x > 0.5, x, x * 2), x), [x])


sizes(1000)
sizes(1000000)
products()
gradients(1000)
gradients(1000000)
layers()
matrices()
print(json.dumps({"version": torch.__version__.split("+")[0], "rows": list(ROWS)}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    work = ROWS[request["name"]]
    start = time.perf_counter()
    for _ in range(request["times"]):
        work()
    print(json.dumps({"seconds": time.perf_counter() - start}), flush=True)
