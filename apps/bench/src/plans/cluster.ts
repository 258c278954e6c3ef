/** Rows of clusters: how long `launch` takes, how much memory, and how long a short program takes. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RowPlan } from '../row.js'
import {
  type Language,
  launchSeconds,
  type Meter,
  memoryPerWorker,
  shortLimitSeconds,
  shortProgramSeconds,
  threadSeconds,
} from '../start-up.js'
import { milliseconds, type TorchWork } from './plan.js'

/** Of PyTorch, whose processes take seconds. */
const TORCH_SIZES_MAX = 4
/** A turn takes as long as its answer; more of them would say no more. */
const TURNS_MAX = 3

export function clusterRows(withTorch: TorchWork): RowPlan[] {
  const compiled = keptCode()
  return [
    ...[2, 4, 16, 64].map((size) => launchRow(size, 'JavaScript', 'wall', withTorch)),
    ...[16, 64].map((size) => launchRow(size, 'JavaScript', 'cpu', withTorch)),
    ...[2, 4, 16].map((size) => launchRow(size, 'TypeScript', 'wall', withTorch)),
    ...[4, 64].map((size) => memoryRow(size, 'JavaScript')),
    memoryRow(4, 'TypeScript'),
    shortProgramRow('wall'),
    shortProgramRow('cpu'),
    shortProgramRow('wall', compiled),
    shortProgramRow('cpu', compiled),
  ]
}

const programOf = (language: Language): string => (language === 'JavaScript' ? '' : `, a program in ${language}`)

const meterOf = (meter: Meter): string => (meter === 'wall' ? '' : ', CPU time')

function launchRow(size: number, language: Language, meter: Meter, withTorch: TorchWork): RowPlan {
  return {
    name: `launch of ${size} workers until ready${programOf(language)}${meterOf(meter)}`,
    unit: 'ms',
    n: 1,
    turnsMax: TURNS_MAX,
    // Each one is the start of new workers, which are cold.
    warm: 1,
    figure: milliseconds,
    higherIsBetter: false,
    ours: () => launchSeconds(size, language, meter),
    limit: () => threadSeconds(size, meter),
    peers: size <= TORCH_SIZES_MAX ? withTorch('launch', 1, size) : {},
    aim: () => null,
  }
}

function memoryRow(size: number, language: Language): RowPlan {
  return {
    name: `memory per worker, ${size} workers${programOf(language)}`,
    unit: 'MiB',
    n: 1,
    turnsMax: TURNS_MAX,
    warm: 1,
    // The contestants give what they weigh, not how long they took.
    figure: (mebibytes) => mebibytes,
    higherIsBetter: false,
    ours: () => memoryPerWorker(language, size),
    limit: () => memoryPerWorker('threads', size),
    peers: {},
    aim: () => null,
  }
}

/** @returns the folder for compiled code, made at the first call and removed when the bench ends */
function keptCode(): () => string {
  let folder: string | null = null
  return () => {
    if (folder === null) {
      const made = mkdtempSync(join(tmpdir(), 'postgrad-bench-'))
      process.once('exit', () => rmSync(made, { recursive: true, force: true }))
      folder = made
    }
    return folder
  }
}

/** @param compiled where compiled code is kept; null: nowhere */
function shortProgramRow(meter: Meter, compiled: (() => string) | null = null): RowPlan {
  return {
    name: `a short program: launch of 2 workers, a first pass and 100 more${compiled === null ? '' : ', with compiled code kept'}${meterOf(meter)}`,
    unit: 'ms',
    n: 1,
    // Each process is a new one, with cold code. The first keeps its own for the others.
    warm: compiled === null ? 0 : 1,
    figure: milliseconds,
    higherIsBetter: false,
    ours: () => shortProgramSeconds(meter, compiled?.() ?? null),
    limit: () => shortLimitSeconds(meter),
    peers: {},
    aim: () => null,
  }
}
