"""Interprets random distributed programs (packages/testing-cases/src/programs/program.ts) with autograd of PyTorch: a call is a function call, a reference
is its value, branches run one after the other; passes that follow each other are passes of one distributed context. Programs on stdin, one a line; their roots and gradients on stdout, one a line.
dist_programs.mjs calls this.
"""
import json
import os
import sys

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc

DTYPES = {"float32": torch.float32, "float64": torch.float64}
OPS = {
    "neg": lambda x: -x, "half": lambda x: x * 0.5, "tanh": torch.tanh, "sin": torch.sin, "cos": torch.cos, "sigmoid": torch.sigmoid,
    "sum": torch.sum, "mean": torch.mean, "flip": lambda x: x.transpose(0, 1), "row": lambda x: x.select(0, 0),
    "flat": lambda x: x.reshape(-1), "detach": lambda x: x.detach(), "f32": lambda x: x.to(torch.float32), "f64": lambda x: x.to(torch.float64),
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "matmul": torch.matmul,
}


def plain(t):
    t = t.detach().reshape(-1)
    # A float32 in its shortest form.
    data = [float(str(x)) for x in t.numpy()]
    return [int(x) if x == int(x) and abs(x) < 2**53 and str(x) != "-0.0" else x for x in data]


def run_steps(program, params, steps, values):
    for step in steps:
        kind = step["k"]
        if kind == "par":
            for branch in step["branches"]:
                run_steps(program, params, branch, values)
            continue
        if kind == "param":
            values[step["out"]] = params[step["i"]]
            continue
        args = [values[i] for i in step["in"]]
        if kind == "op":
            values[step["out"]] = OPS[step["op"]](*args)
        elif kind == "call":
            for out, value in zip(step["outs"], run_block(program, params, step["block"], args)):
                values[out] = value
        elif kind == "remote":
            values[step["out"]] = run_block(program, params, step["block"], args)[0]
        elif kind == "here":
            values[step["out"]] = args[0]
        else:
            assert kind == "fail", kind


def run_block(program, params, index, args):
    block = program["blocks"][index]
    values = dict(enumerate(args))
    run_steps(program, params, block["steps"], values)
    return [values[i] for i in block["outs"]]


def run(program):
    params = [
        torch.tensor(p["data"], dtype=DTYPES[p["dtype"]]).reshape(p["shape"]).requires_grad_() for p in program["params"]
    ]
    values = {}
    run_steps(program, params, program["blocks"][0]["steps"], values)
    roots = [values[i] for i in program["roots"]]
    result = {"roots": [plain(r)[0] for r in roots]}
    if "backward" in program:
        return {**result, **run_passes(program["backward"], params, values)}
    grads = torch.autograd.grad(roots, params, allow_unused=True)
    return {**result, "gradients": {str(i): plain(g) for i, g in enumerate(grads) if g is not None}}


def run_passes(steps, params, values):
    """Passes from scalars, one after the other in one context; what is read on the way, and in the end."""
    read = []
    with dist_autograd.context() as context_id:

        def gradients():
            found = dist_autograd.get_gradients(context_id)
            return {str(i): found[p] for i, p in enumerate(params) if p in found}

        def plain_gradients():
            return {i: plain(g) for i, g in gradients().items()}

        for step in steps:
            kind = step["k"]
            if kind == "pass":
                assert step["grads"] is None, "PyTorch has no gradients of roots"
                # A parameter that a call returns is a root with a history, as if it had come in a message.
                roots = [values[i].view_as(values[i]) for i in step["roots"]]
                dist_autograd.backward(context_id, roots, retain_graph=step["keep"])
            elif kind == "read":
                read.append(plain_gradients())
            else:
                assert kind == "write", kind
                for gradient in gradients().values():
                    gradient.mul_(0.5)
        return {"gradients": plain_gradients(), "read": read}


if __name__ == "__main__":
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=os.environ.get("MASTER_PORT", "29513"))
    rpc.init_rpc("worker0", rank=0, world_size=1)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line)), separators=(",", ":")))
    rpc.shutdown()
