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
  t(
    'ddp-replicas-not-compared',
    DDP('replica-check.sim.test.ts'),
    'DDP-26',
    DDP('replica-check.ts'),
    `.size > 1) {`,
    `.size > 2) {`,
    'replicas of two values count as alike',
  ),
  t(
    'ddp-replicas-mended-unseen',
    DDP('replica-check.sim.test.ts'),
    'DDP-26 one bit',
    DDP('replica-check.ts'),
    `    const named = [...parameters, ...buffers]\n`,
    `    this.checkedAt = reductions\n    const named = [...parameters, ...buffers]\n`,
    'replicas that differ are not compared again',
  ),
  t(
    'ddp-replicas-blamed',
    DDP('replica-check.sim.test.ts'),
    'DDP-26 without',
    DDP('ddp-errors.ts'),
    `most.length > rest.length`,
    `most.length >= rest.length`,
    'half of the ranks are called diverged',
  ),
  t(
    'ddp-replicas-without-inputs',
    DDP('replica-check.sim.test.ts'),
    'DDP-26 ranks',
    DDP('replica-check.ts'),
    `hasInputs ? await digestsOf(named) : null`,
    `await digestsOf(named)`,
    'a rank without inputs counts as diverged',
  ),
  t(
    'ddp-replicas-local-sgd',
    DDP('replica-check.sim.test.ts'),
    'DDP-26 nothing',
    DDP('local-sgd.ts'),
    `    letGoApart(all)\n`,
    ``,
    'replicas of an averager are compared',
  ),
  t(
    'ddp-replicas-local-hook',
    DDP('replica-check.sim.test.ts'),
    'DDP-26 nothing',
    DDP('distributed-data-parallel.ts'),
    `    if (reducer.isLocalSGD) return\n`,
    ``,
    'replicas under postLocalSGDHook are compared',
  ),
  t(
    'ddp-replicas-own-buffers',
    DDP('replica-check.sim.test.ts'),
    'DDP-26 buffers',
    DDP('distributed-data-parallel.ts'),
    `broadcastBuffers ? module.namedBuffers() : []`,
    `module.namedBuffers()`,
    'buffers that nothing makes alike are compared',
  ),
  t(
    'ddp-replicas-before-hook',
    DDP('replica-check.sim.test.ts'),
    'DDP-26 buffers',
    DDP('distributed-data-parallel.ts'),
    `at !== (this.bufferHook?.location ?? 'preForward')`,
    `at !== 'preForward'`,
    'buffers are compared before a hook has made them alike',
  ),
  t(
    'ddp-buffers-written-again',
    DDP('reducer.sim.test.ts'),
    'DDP-9 two',
    DDP('replica.ts'),
    `!t.requiresGrad && t.storage.isKept`,
    `t.requiresGrad`,
    'a broadcast writes to a buffer that has the same bits',
  ),
  t(
    'ddp-statistics-of-synced',
    DDP('statistics.sim.test.ts'),
    'DDP-9 statistics',
    DDP('distributed-data-parallel.ts'),
    `const isFirst = isRecorded && this.isFirst\n`,
    `const isFirst = isSynced\n`,
    'buffers become alike before each synchronised forward, not behind each',
  ),
  t(
    'ddp-statistics-of-join',
    DDP('statistics.sim.test.ts'),
    'DDP-9 statistics',
    DDP('distributed-data-parallel.ts'),
    `        if (isSynced || isFirst) this.isFirst = isSynced!\n`,
    ``,
    'a rank without inputs does not follow which forward is the first',
  ),
  t(
    'ddp-forwards-overtake',
    DDP('no-sync.sim.test.ts'),
    'DDP-24',
    DDP('distributed-data-parallel.ts'),
    `      else if (isRecorded) await this.turn\n`,
    ``,
    'a forward of noSync runs before buffers have arrived for the one before it',
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
