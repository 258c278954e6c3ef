"""Writes packages/process-group/golden/collectives.json: what PyTorch's gloo gives for collectives of three ranks, or in whose words it refuses. Sums of floats are
exact, so that gloo's order of summation shows nowhere. bool is left out: gloo refuses it, and is of no use afterwards. Run it with a PyTorch that has gloo:  python3 scripts/golden/collectives.py
"""
import json
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from common import DTYPES, plain

WORLD = 3
REDUCTIONS = ["SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]
INPUTS = {
    "float32": [[1.5, -2, 0.25, 8], [4, 3, -0.5, 2], [-1, 0.125, 16, -2]],
    "float64": [[1.5, -2, 0.25, 8], [4, 3, -0.5, 2], [-1, 0.125, 16, -2]],
    # Of the last two the sum, and the product, do not fit into 32 bits.
    "int32": [[5, -7, 12, 2000000000, 70000], [3, 2, 10, 2000000000, 70000], [-9, 1, 6, 3, 3]],
}


def attempt(run):
    try:
        return {"out": [plain(x) for x in run()]}
    except Exception as error:  # noqa: BLE001
        return {"refused": str(error).split("\n")[0][:120]}


def cases(rank):
    for dtype, rows in INPUTS.items():
        x = torch.tensor(rows[rank], dtype=DTYPES[dtype])
        for reduction in REDUCTIONS:
            y = x.clone()

            def reduced(y=y, reduction=reduction):
                dist.all_reduce(y, op=getattr(dist.ReduceOp, reduction))
                return [y]

            yield {"fn": "allReduce", "dtype": dtype, "op": reduction}, attempt(reduced)
        def broadcast(x=x):
            y = x.clone()
            dist.broadcast(y, 1)
            return [y]

        def all_gather(x=x):
            outs = [torch.zeros_like(x) for _ in range(WORLD)]
            dist.all_gather(outs, x)
            return outs

        def gather(x=x):
            outs = [torch.zeros_like(x) for _ in range(WORLD)] if rank == 2 else None
            dist.gather(x, outs, dst=2)
            return outs or []

        def scatter(x=x):
            y = torch.zeros_like(x)
            dist.scatter(y, [x + i for i in range(WORLD)] if rank == 1 else None, src=1)
            return [y]

        def around(x=x):
            y = torch.zeros_like(x)
            work = dist.isend(x, (rank + 1) % WORLD, tag=4)
            dist.recv(y, (rank + 2) % WORLD, tag=4)
            work.wait()
            return [y]

        for name, run in [("broadcast", broadcast), ("allGather", all_gather), ("gather", gather), ("scatter", scatter), ("sendRecv", around)]:
            yield {"fn": name, "dtype": dtype}, attempt(run)


def main(rank, file, results):
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=WORLD)
    results[rank] = list(cases(rank))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    results = mp.Manager().dict()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(main, (os.path.join(folder, "store"), results), WORLD)
    out = {
        "inputs": {dtype: [plain(torch.tensor(row, dtype=DTYPES[dtype])) for row in rows] for dtype, rows in INPUTS.items()},
        "cases": [{**results[0][i][0], "ranks": [results[rank][i][1] for rank in range(WORLD)]} for i in range(len(results[0]))],
    }
    path = os.path.join(os.path.dirname(__file__), "../../packages/process-group/golden/collectives.json")
    with open(path, "w") as f:
        json.dump(out, f, indent=0, separators=(",", ":"))
        f.write("\n")
