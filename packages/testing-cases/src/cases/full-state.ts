/** One file of a model on three workers, and back: the measure is the file of the same model in one place. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { BatchNorm1d, Linear, loadSafetensors, Module, safetensorsBytes } from '@postgrad/nn'
import { loadModel, RemoteModule, saveModel } from '@postgrad/parallel'
import { call, currentWorker, expose, type RRef } from '@postgrad/rpc'
import type { Tensor } from '@postgrad/tensor'

export class ScatteredLeaf extends Module {
  readonly linear = new Linear(4, 4)
  forward(x: Tensor): Tensor {
    return this.linear.forward(x)
  }
}

export class ScatteredMiddle extends Module {
  readonly norm = new BatchNorm1d(4)
  readonly leaf: ScatteredLeaf | RemoteModule<ScatteredLeaf>
  constructor(to: string | null) {
    super()
    this.leaf = to === null ? new ScatteredLeaf() : new RemoteModule(to, ScatteredLeaf)
  }
  forward(x: Tensor): Tensor {
    return x
  }
  end(): void {
    if (this.leaf instanceof RemoteModule) this.leaf.dispose()
  }
}

class Scattered extends Module {
  readonly head = new Linear(4, 4)
  readonly middle: ScatteredMiddle | RemoteModule<ScatteredMiddle>
  readonly other: ScatteredLeaf | RemoteModule<ScatteredLeaf>
  constructor(isHere: boolean) {
    super()
    this.middle = isHere ? new ScatteredMiddle(null) : new RemoteModule('worker1', ScatteredMiddle, ['worker2'])
    this.other = isHere ? new ScatteredLeaf() : new RemoteModule('worker2', ScatteredLeaf)
  }
}

const weightThere = async (ref: RRef<ScatteredLeaf>): Promise<unknown> => (await ref.toHere()).linear.weight.toArray()

export interface FullStatePlan {
  /** For the file of the model on three workers, and that of the model in one place. */
  readonly scattered: string
  readonly local: string
}

export interface FullStateReport {
  /** Of both files. */
  readonly saved: 'same' | 'other' | 'none'
  readonly savedAgain: 'same' | 'other' | 'none'
  /** Of the caller's part and of a part on worker2, whether the load has changed it. */
  readonly changed: readonly boolean[]
  readonly codes: readonly string[]
}

/** Saves a model, makes the file of the same model in one place with other weights, loads it, and saves again. A failure is reported. Exposed; runs as worker0. */
export async function saveAndLoadModel({ scattered, local }: FullStatePlan): Promise<FullStateReport> {
  const model = new Scattered(false)
  const other = model.other as RemoteModule<ScatteredLeaf>
  const inOnePlace = new Scattered(true)
  const codes: string[] = []
  const attempt = async (action: () => Promise<unknown>): Promise<void> => {
    await action().catch((error: unknown) => codes.push(String((error as { code?: unknown }).code)))
  }
  const weights = async () =>
    [model.head.weight.toArray(), await call('worker2', weightThere, [other.getModuleRref()])].map((each) => JSON.stringify(each))

  const before = await weights()
  await attempt(() => saveModel(scattered, model))
  if (existsSync(scattered)) inOnePlace.loadStateDict(await loadSafetensors(readFileSync(scattered)))
  const saved = await compared(scattered, inOnePlace)
  for (const x of Object.values(inOnePlace.stateDict())) x.add_(1)
  writeFileSync(local, await safetensorsBytes(inOnePlace.stateDict()))
  await attempt(() => loadModel(local, model))
  const after = await weights()
  await attempt(() => saveModel(scattered, model))
  const savedAgain = await compared(scattered, inOnePlace)
  await attempt(async () => await (model.middle as RemoteModule<ScatteredMiddle>).getModuleRref().call('end', []))
  for (const each of [model.middle, model.other]) (each as RemoteModule).dispose()
  return { saved, savedAgain, changed: before.map((each, i) => each !== after[i]), codes: [...new Set(codes)] }
}

/** On worker3: loads parts of which worker1 and worker2 have one each. */
const loadThere = async (path: string, parts: Readonly<Record<string, RRef<ScatteredLeaf>>>): Promise<void> => {
  await loadModel(path, parts as never)
}

export interface DyingLoad {
  /** How it ended for the worker that called worker3. */
  readonly end: string
  /** Of the parts on worker1 and worker2, whether the load has changed them. */
  readonly changed: readonly boolean[]
}

/** Has worker3, which owns no part, load into worker1 and worker2. Exposed; runs as worker0. */
export async function loadFromAnother(path: string): Promise<DyingLoad> {
  const parts = { a: new RemoteModule('worker1', ScatteredLeaf), b: new RemoteModule('worker2', ScatteredLeaf) }
  const refs = [parts.a, parts.b].map((each) => each.getModuleRref())
  const weights = async () => await Promise.all(refs.map(async (ref) => JSON.stringify(await call(ref.owner(), weightThere, [ref]))))
  const before = await weights()
  const local = new ScatteredLeaf()
  const state = Object.entries(local.stateDict()).flatMap(([key, x]) => ['a', 'b'].map((part) => [`${part}.${key}`, x] as const))
  writeFileSync(path, await safetensorsBytes(Object.fromEntries(state)))
  const end = await call('worker3', loadThere, [path, { a: refs[0]!, b: refs[1]! }]).then(
    () => 'loaded',
    (error: unknown) => String((error as { code?: unknown }).code),
  )
  // Each owner learns of the death by itself.
  await new Promise<void>((resolve) => void currentWorker().clock.setTimer(1_000, resolve))
  const after = await weights()
  for (const each of Object.values(parts)) each.dispose()
  return { end, changed: before.map((each, i) => each !== after[i]) }
}

async function compared(path: string, model: Module): Promise<'same' | 'other' | 'none'> {
  if (!existsSync(path)) return 'none'
  return Buffer.compare(readFileSync(path), await safetensorsBytes(model.stateDict())) === 0 ? 'same' : 'other'
}

expose({ ScatteredLeaf, ScatteredMiddle, scatteredWeight: weightThere, saveAndLoadModel, loadFromAnother, scatteredLoad: loadThere })
