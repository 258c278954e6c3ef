/**
 * The mutations of `npm run mutate` that a test catches: each takes one repair out again, by one exact change of a source file, and names the test file and the rule
 * (or the words) with which the names of its tests begin. `find` occurs once in the file. Those that a suite catches from a seed stand in `mutations.mjs`.
 *
 *   t(id, test, rule, file, find, replace, what)
 *
 * `test` and `file` are paths of sources, from the repository: a test of any lane, a module of a package or an app.
 */
export const MUTATIONS_BY_TEST = [
  // ---- files that others own, and folders that others may write
  // ---- the end of a worker, of a call, of a program
  // ---- pipelines and collectives
  t(
    'pipeline-divides-all',
    'packages/parallel/src/pipelining/pipeline.sim.test.ts',
    'PIP-8',
    'packages/parallel/src/pipelining/gradient-order.ts',
    'accumulateInto(leaf, divided(grad!, this.options.divisor), true)',
    'accumulateInto(leaf, grad!, false), (leaf.grad = divided(leaf.grad!, this.options.divisor))',
    'a step divides what was in .grad before, too',
  ),
  t(
    'pipeline-divides-after-the-mean',
    'packages/parallel/src/pipelining/replicas.sim.test.ts',
    'PIP-18',
    'packages/parallel/src/pipelining/gradient-order.ts',
    'accumulateInto(leaf, divided(grad!, this.options.divisor), true)',
    'accumulateInto(leaf, grad!, false), (leaf.grad = divided(leaf.grad!, this.options.divisor))',
    'what was added up under noSync is divided twice',
  ),
  t(
    'pipeline-shared-weights-apart',
    'packages/parallel/src/pipelining/pipeline.sim.test.ts',
    'PIP-19',
    'packages/parallel/src/pipelining/shared-weights.ts',
    'weights.some((weight) => group.weights.has(weight))',
    'false',
    'each stage adds its part of the gradient of a shared weight by itself',
  ),
  t(
    'pipeline-stale-gradient-is-used',
    'packages/parallel/src/pipelining/replicas.sim.test.ts',
    'PIP-18',
    'packages/parallel/src/ddp/reducer.ts',
    'this.usedAlone.has(i) && this.parameters[i]!.value.grad !== null',
    'this.parameters[i]!.value.grad !== null',
    'a weight that no replica has used in this step is reduced again',
  ),
  t(
    'pipeline-replica-shares-with-plain',
    'packages/parallel/src/pipelining/replicas.sim.test.ts',
    'PIP-18',
    'packages/parallel/src/pipelining/shared-weights.ts',
    'other.isReplica || stage.isReplica',
    'other.isReplica && stage.isReplica',
    'a stage without DistributedDataParallel adds to a weight after its mean was made',
  ),
  t(
    'pipeline-alone-is-forgotten',
    'packages/parallel/src/pipelining/replicas.sim.test.ts',
    'PIP-18 an optimizer',
    'packages/parallel/src/pipelining/stage.ts',
    'if (!this.reduces && this.order!.isFinished) this.replica?.keepAlone()',
    '',
    'an optimizer steps by gradients of a pipeline that were gathered under noSync and never reduced',
  ),
  t(
    'join-loses-what-was-gathered',
    'packages/parallel/src/ddp/join.sim.test.ts',
    'DDP-21 what a rank has gathered',
    'packages/parallel/src/ddp/reducer.ts',
    'bucket.fill(k, left(i), this.factor, false)',
    'bucket.fill(k, null, this.factor, false)',
    'a rank whose inputs end drops what it has gathered under noSync',
  ),
  t(
    'reduce-same-tensor-twice',
    'packages/process-group/src/groups.sim.test.ts',
    'PG-20',
    'packages/process-group/src/api/reductions.ts',
    "checkOutputsApart(fn, 'the tensors', tensors)",
    "checkOutputs(fn, 'the tensors', tensors)",
    'allReduceCoalesced takes one tensor twice, and ranks get other values',
  ),
  t(
    'gather-into-one-tensor',
    'packages/process-group/src/groups.sim.test.ts',
    'PG-20',
    'packages/process-group/src/api/moves.ts',
    "checkOutputsApart('allGather', 'the outputs', tensorList)",
    "checkOutputs('allGather', 'the outputs', tensorList)",
    'allGather writes what two ranks give into one tensor',
  ),
  t(
    'premul-sum-of-integers',
    'packages/process-group/src/groups.sim.test.ts',
    'PG-20',
    'packages/process-group/src/algorithms/reduce-op.ts',
    "isPremul && dtype === 'int32' && (op.factor | 0) !== op.factor",
    "isPremul && dtype === 'int32' && Number.isNaN(op.factor)",
    'premulSum(0.5) of int32 breaks the group',
  ),
  t(
    'reduce-scatter-over-its-input',
    'packages/process-group/src/groups.sim.test.ts',
    'PG-11',
    'packages/process-group/src/api/reductions.ts',
    'const isCopied = mine.storage === output.storage && !isSameView(mine, output)',
    'const isCopied = false',
    'reduceScatter writes over the part of its input that it has not read',
  ),
  t(
    'gather-over-its-tensor',
    'packages/process-group/src/groups.sim.test.ts',
    'PG-11',
    'packages/process-group/src/algorithms/moves.ts',
    '  write(op, flat(tensor), outs[root]!)\n  for (const [rank, into] of outs.entries()) {\n    if (rank === root) continue\n',
    '  for (const [rank, into] of outs.entries()) {\n    if (rank === root) {\n      write(op, flat(tensor), into)\n      continue\n    }\n',
    'gather writes what others give over its own tensor before it reads that',
  ),
  t(
    'all-gather-over-its-tensors',
    'packages/process-group/src/groups.sim.test.ts',
    'PG-11',
    'packages/process-group/src/algorithms/moves.ts',
    'isRead(part, i) ? raw.clone(part) : part',
    'part',
    'allGatherCoalesced writes one of its tensors over another that it has not read',
  ),
  // ---- replicas
  t(
    'ddp-no-sync-everywhere',
    DDP('no-sync.sim.test.ts'),
    'DDP-24',
    DDP('no-sync.ts'),
    `  while (each !== null && each.model !== model) each = each.outer`,
    `  if (each !== null && each.model !== model) each = null`,
    'noSync of another model inside hides the outer one',
  ),
  t(
    'ddp-no-sync-of-all',
    DDP('no-sync.sim.test.ts'),
    'DDP-24',
    DDP('no-sync.ts'),
    `each.model !== model) each`,
    `each.model === null) each`,
    'noSync of one model quiets the others',
  ),
  t(
    'ddp-pass-does-not-wait',
    DDP('no-sync.sim.test.ts'),
    'DDP-24',
    DDP('distributed-data-parallel.ts'),
    `    while (reducer.mustWait) await reducer.aloneEnded()\n`,
    ``,
    'a reduced pass begins while one of noSync adds to the gradients',
  ),
  t(
    'ddp-passes-in-any-order',
    DDP('no-sync.sim.test.ts'),
    'DDP-24',
    DDP('local-pass.ts'),
    `HIGHEST_PRIORITY - ++begun`,
    `HIGHEST_PRIORITY`,
    'passes of noSync overtake each other when a message arrives',
  ),
  t(
    'ddp-join-forwards-at-once',
    DDP('no-sync.sim.test.ts'),
    'DDP-24',
    DDP('distributed-data-parallel.ts'),
    `if (this.joinContext === null) return`,
    `if (this.turn !== null) return`,
    'forward passes of a join mix their collectives',
  ),
  t(
    'ddp-quiet-context-reduced',
    DDP('no-sync.sim.test.ts'),
    'DDP-24',
    DDP('reducer.ts'),
    `this.quietContexts.has(task.sink.contextId)`,
    `false`,
    'a context of noSync takes the reduction of another forward',
  ),
  t(
    'ddp-steps-alone',
    DDP('no-sync.sim.test.ts'),
    'DDP-25',
    DDP('reducer.ts'),
    `if (grad !== null && this.options.group.size > 1) markAlone(grad)`,
    ``,
    'optimizers step by gradients that no pass has reduced',
  ),
  t(
    'ddp-steps-alone-sgd',
    DDP('no-sync.sim.test.ts'),
    'DDP-25 no optimizer',
    'packages/nn/src/optim/optimizer-base.ts',
    '    checkReduced(`${this.op}.step`, this.parameters(), grads)\n',
    ``,
    'a local optimizer steps by gradients that no pass has reduced',
  ),
  t(
    'ddp-steps-alone-zero',
    DDP('no-sync.sim.test.ts'),
    'DDP-25 no optimizer',
    DDP('zero-redundancy-optimizer.ts'),
    `    checkReduced('ZeroRedundancyOptimizer.step', this.ownerOf.keys(), grads)\n`,
    ``,
    'a ZeroRedundancyOptimizer notices unreduced gradients when others wait for it',
  ),
  t(
    'ddp-own-sum-refused',
    DDP('no-sync.sim.test.ts'),
    'DDP-25 no optimizer',
    'packages/process-group/src/api/checks.ts',
    `  for (const each of outputs) markShared(each)\n`,
    ``,
    'gradients that a program has summed up itself are refused',
  ),
  t(
    'ddp-disposed-pass-resolves',
    DDP('no-sync.sim.test.ts'),
    'DDP-12',
    DDP('reducer.ts'),
    `    throw modelDisposed('backward')\n`,
    ``,
    'the pass of a disposed model resolves',
  ),
  t(
    'ddp-disposed-pass-breaks-off',
    DDP('no-sync.sim.test.ts'),
    'DDP-12',
    DDP('reducer.ts'),
    `if (!this.isReducing) this.release()`,
    `this.release()`,
    'a disposed model leaves its reduction undone, and its pass has local gradients',
  ),
  t(
    'ddp-disposed-forward',
    DDP('no-sync.sim.test.ts'),
    'DDP-12',
    DDP('distributed-data-parallel.ts'),
    `this.reducer('forward').prepareForBackward(`,
    `reducer.prepareForBackward(`,
    'a forward under way outlives its model',
  ),
  // ---- ranks that return
  // ---- what a peer may send
  // ---- budgets
  // ---- checkpoints
]

/** A file of data-parallel training. */
function DDP(file) {
  return `packages/parallel/src/ddp/${file}`
}

function t(id, test, rule, file, find, replace, what) {
  return { id, test, rule, file, find, replace, what }
}
