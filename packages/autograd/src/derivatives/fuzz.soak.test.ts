/**
 * Random calls of operations next to PyTorch, with gradients and second derivatives, on each backend: `npm run soak -- --fuzz 30000 derivatives/fuzz`. It needs
 * python3 with torch, or says that it is missing. `--first SEED` begins with another batch; `scripts/golden/fuzz.py` makes
 * them. A call that differs is printed in one line: POSTGRAD_SOAK_CASE='{"label":…}' runs that one again, without PyTorch.
 */
import { expect, test } from '@jest/globals'
import { type Device, device, type Tensor, withDevice } from '@postgrad/tensor'
import { isFloating, isTensor } from '@postgrad/tensor/internal'
import { type GoldenCase, type GoldenTensor, residentDevice } from '@postgrad/tensor/suite'
import { Torch } from '../with-torch/torch.fixture.js'
import { EXCUSES, excuseFor } from './excuses.fixture.js'
import { byGrad, byGradTwice, compareOne, TOLERANCE } from './gradients.fixture.js'

const CASES = Number(process.env.POSTGRAD_SOAK_FUZZ ?? 3_000)
const FIRST = Number(process.env.POSTGRAD_SOAK_FIRST ?? 1)
const CASE = process.env.POSTGRAD_SOAK_CASE
const BATCH = 250
/** So many calls use each excuse. */
const ENOUGH = 100_000
/** How many differences of one kind are shown. */
const SHOWN = 2
const ROUNDED = 'the rounding of float32'
/** A larger difference, relative to max(1, the exact value), is not rounding. */
const ROUNDING = 1e-2
/** Where two like numbers are subtracted, chance brings either side so much nearer to the exact result. */
const NEARER = 50

interface Request {
  readonly seed: number
  readonly count: number
}

/** One tensor that both sides give. */
interface Answer {
  readonly what: string
  readonly got: Tensor | null
  readonly want: GoldenTensor | null
}

const backends: readonly (readonly [string, Device])[] = [
  ['wasm', device('wasm')],
  ['js', device('js')],
  ['resident', residentDevice()],
]

test('calls differ from PyTorch in nothing', async () => {
  await Promise.all(backends.map(([, backend]) => backend.ready()))
  if (CASE !== undefined) {
    const failures = backends.map(([, backend]) => failureOf(JSON.parse(CASE) as GoldenCase, backend))
    expect(await Promise.all(failures)).toEqual(backends.map(() => null))
    return
  }
  const torch = await Torch.start<Request, { readonly cases: readonly GoldenCase[] }>(undefined, 'fuzz.py')
  const found = new Map<string, string[]>()
  const excused = new Map<string, number>()
  let [count, twice] = [0, 0]
  try {
    const ask = (seed: number) => torch.run([{ seed, count: BATCH }])
    let next = ask(FIRST)
    for (let seed = FIRST; count < CASES; seed++) {
      const [answer] = await next
      if (answer == null) throw new Error(`PyTorch crashes at seed ${seed}`)
      // PyTorch works meanwhile.
      if (count + BATCH < CASES) next = ask(seed + 1)
      count += answer.cases.length
      twice += answer.cases.filter((c) => c.seconds !== undefined).length
      for (const [name, backend] of backends) {
        for (const c of answer.cases) {
          const failure = await failureOf(c, backend)
          if (failure === null) continue
          const excuse = failure.isRounding ? ROUNDED : excuseFor(c, failure.text)
          if (excuse !== undefined) excused.set(excuse, (excused.get(excuse) ?? 0) + 1)
          else {
            const kind = `${c.op} on ${name}`
            found.set(kind, [...(found.get(kind) ?? []), `seed ${seed}, ${failure.text}: ${JSON.stringify(c)}`])
          }
        }
      }
    }
  } finally {
    torch.close()
  }
  const said = [...excused].map(([words, n]) => `${n} × ${words}`).join('; ')
  // The stdout of tests is not shown.
  console.error(
    `seeds from ${FIRST} on: ${count} calls on each of ${backends.map(([name]) => name).join(', ')} next to PyTorch ${torch.version}, ${twice} with second derivatives; listed: ${said}`,
  )
  for (const all of found.values()) console.error(all.slice(0, SHOWN).join('\n'))
  expect([...found].map(([kind, all]) => `${all.length} × ${kind}`)).toEqual([])
  if (count >= ENOUGH) expect(EXCUSES.map(({ words }) => words).filter((words) => !excused.has(words))).toEqual([])
})

async function failureOf(c: GoldenCase, backend: Device): Promise<{ readonly text: string; readonly isRounding: boolean } | null> {
  try {
    const all = answers(c, backend)
    for (const [i, { what, got, want }] of all.entries()) {
      const failure = await compareOne(got, want, what.startsWith('second'))
      if (failure !== null)
        return {
          text: `${what}: ${failure}`,
          isRounding: isFloat32(c) && (await isRounding(all[i]!, () => answers(inFloat64(c), backend)[i]!)),
        }
    }
    return null
  } catch (error) {
    return { text: error instanceof Error ? (error.stack ?? error.message) : String(error), isRounding: false }
  }
}

function answers(c: GoldenCase, backend: Device): Answer[] {
  return withDevice(backend, () => {
    const once = byGrad(c)
    const parts: Readonly<Record<string, unknown>> = isTensor(once.out)
      ? { out: once.out }
      : (once.out as Readonly<Record<string, unknown>>)
    const results = Object.entries(c.parts ?? { out: c.out! }).map(([name, want]) => ({ what: name, got: parts[name] as Tensor, want }))
    const gradients = c.grads?.map((want, i) => ({ what: `gradient of tensor ${i}`, got: once.found[i]!, want })) ?? []
    const again = c.seconds === undefined ? [] : byGradTwice(c).found
    const seconds = c.seconds?.map((want, i) => ({ what: `second gradient of tensor ${i}`, got: again[i]!, want })) ?? []
    return [...results, ...gradients, ...seconds]
  })
}

/** Whether a difference is float32's rounding: float64 is about as near to postgrad's elements as to PyTorch's, or nearer. That float64 is right other calls show. */
async function isRounding({ got, want }: Answer, again: () => Answer): Promise<boolean> {
  if (got === null || want === null || got.dtype !== want.t || !isFloating(got.dtype)) return false
  const [ours, exact] = [await got.data(), await again().got!.data()]
  const away = (v: number | string, i: number) => {
    const distance = Math.abs(Number(v) - exact[i]!) / Math.max(1, Math.abs(exact[i]!))
    return Object.is(Number(v), exact[i]) ? 0 : Number.isNaN(distance) ? Infinity : distance
  }
  const there = Math.max(...want.data.map(away))
  return there <= ROUNDING && Math.max(...[...ours].map(away)) <= Math.max(TOLERANCE.float32, NEARER * there)
}

/** Whether something of it is computed in float32: where it meets float64, gradients of float64 may be, too. */
const isFloat32 = (c: GoldenCase) => JSON.stringify(c.args).includes('"float32"')

/** The same call of the same numbers in float64. */
function inFloat64(c: GoldenCase): GoldenCase {
  const args = JSON.parse(JSON.stringify(c.args), (_, value) =>
    value?.t === 'float32' ? { ...value, t: 'float64', data: value.data.map(asFloat32) } : value,
  )
  return { ...c, args }
}

/** A number is rounded to float32. NaN and the infinities are words. */
function asFloat32(v: number | string): number | string {
  const rounded = Math.fround(Number(v))
  return Number.isFinite(rounded) ? rounded : v
}
