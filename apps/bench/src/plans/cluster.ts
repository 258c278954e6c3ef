/** Rows of clusters: how long `launch` takes, how much memory, and how long a short program takes. */
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
  return [
    ...[2, 4, 16, 64].map((size) => launchRow(size, 'JavaScript', withTorch)),
    ...[2, 4, 16].map((size) => launchRow(size, 'TypeScript', withTorch)),
    ...[4, 64].map((size) => memoryRow(size, 'JavaScript')),
    memoryRow(4, 'TypeScript'),
    shortProgramRow('wall', ''),
    shortProgramRow('cpu', ', CPU time'),
  ]
}

const programOf = (language: Language): string => (language === 'JavaScript' ? '' : `, a program in ${language}`)

function launchRow(size: number, language: Language, withTorch: TorchWork): RowPlan {
  return {
    name: `launch of ${size} workers until ready${programOf(language)}`,
    unit: 'ms',
    n: 1,
    turnsMax: TURNS_MAX,
    // Each one is the start of new workers, which are cold.
    warm: 1,
    figure: milliseconds,
    higherIsBetter: false,
    ours: () => launchSeconds(size, language),
    limit: () => threadSeconds(size),
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

function shortProgramRow(meter: Meter, what: string): RowPlan {
  return {
    name: `a short program: launch of 2 workers, a first pass and 100 more${what}`,
    unit: 'ms',
    n: 1,
    // Each process is a new one, with cold code.
    warm: 0,
    figure: milliseconds,
    higherIsBetter: false,
    ours: () => shortProgramSeconds(meter),
    limit: () => shortLimitSeconds(meter),
    peers: {},
    aim: () => null,
  }
}
