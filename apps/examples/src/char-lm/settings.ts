/** Settings of the main job: its command line, read and checked, with defaults that fit the device. */
import { parseArgs } from 'node:util'
import type { DeviceSpec } from 'postgrad'
import { countOption, numberOption, positiveOption } from '../shared/number-option.js'
import { commandOf, withOptions } from '../shared/place.js'

export interface Settings {
  /** Null: postgrad's own text. */
  readonly data: string | null
  readonly device: DeviceSpec
  readonly seconds: number
  /** Null: as many as `seconds` allow. */
  readonly steps: number | null
  readonly hidden: number
  readonly embedding: number
  readonly batch: number
  readonly sequence: number
  readonly learningRate: number
  readonly momentum: number
  readonly seed: number
  /** Null: `out/char-lm.svg`. */
  readonly out: string | null
  /** Characters of the text that are held out at most. */
  readonly heldOutMax: number
}

type Sizes = Pick<Settings, 'hidden' | 'embedding' | 'batch' | 'sequence' | 'learningRate' | 'heldOutMax'>

/** In the default time the fast kernels can train a model of some size. */
const LARGE: Sizes = { hidden: 128, embedding: 32, batch: 64, sequence: 16, learningRate: 3, heldOutMax: 32_768 }
/** Loops are more than ten times slower. */
const SMALL: Sizes = { hidden: 48, embedding: 16, batch: 32, sequence: 8, learningRate: 1.5, heldOutMax: 8192 }
const BY_DEVICE: Readonly<Record<DeviceSpec, Sizes>> = {
  cpu: LARGE,
  wasm: LARGE,
  blas: LARGE,
  js: SMALL,
}
const DEVICES = Object.keys(BY_DEVICE) as readonly DeviceSpec[]
const SECONDS = 45
const MOMENTUM = 0.9

export const HELP = `Usage: ${withOptions(commandOf('char-lm'), '[options]')}

Trains a character-level language model that is spread over three workers:
ps holds the embedding and the decoder, trainer the LSTM and the loop, evaluator measures and samples.

Where there are two defaults, the second is for devices other than wasm: they are slower.

Options:
  --data FILE        the text to learn, in UTF-8 (default: postgrad's own sources and documents)
  --device DEVICE    ${DEVICES.join(', ')} (default: wasm)
  --seconds N        how long to train (default: ${SECONDS})
  --steps N          train N steps instead, however long they take
  --hidden N         size of the recurrent core (default: ${LARGE.hidden}; ${SMALL.hidden})
  --embedding N      size of a character's vector (default: ${LARGE.embedding}; ${SMALL.embedding})
  --batch N          streams of text that are read at once (default: ${LARGE.batch}; ${SMALL.batch})
  --sequence N       characters that gradients run back over (default: ${LARGE.sequence}; ${SMALL.sequence})
  --lr X             learning rate of SGD at its height (default: ${LARGE.learningRate}; ${SMALL.learningRate})
  --momentum X       of SGD, Nesterov's (default: ${MOMENTUM})
  --seed N           of all random numbers (default: 0)
  --out FILE         where the picture of the loss goes, and next to it the log;
                     both replace earlier ones (default: out/char-lm.svg)
  --help             print this`

/** Null: help was asked for. @throws TypeError, RangeError with a message for the user */
export function readSettings(argv: readonly string[]): Settings | null {
  const text = { type: 'string' } as const
  const { values } = parseArgs({
    args: [...argv],
    options: {
      data: text,
      device: text,
      seconds: text,
      steps: text,
      hidden: text,
      embedding: text,
      batch: text,
      sequence: text,
      lr: text,
      momentum: text,
      seed: text,
      out: text,
      help: { type: 'boolean' },
    },
  })
  if (values.help) return null
  const device = (values.device ?? 'wasm') as DeviceSpec
  if (!DEVICES.includes(device)) throw new RangeError(`--device: expected one of ${DEVICES.join(', ')}, got '${device}'`)
  const sizes = BY_DEVICE[device]

  return {
    data: values.data ?? null,
    device,
    seconds: positiveOption(values, 'seconds', SECONDS),
    steps: countOption(values, 'steps', null),
    hidden: countOption(values, 'hidden', sizes.hidden),
    embedding: countOption(values, 'embedding', sizes.embedding),
    batch: countOption(values, 'batch', sizes.batch),
    sequence: countOption(values, 'sequence', sizes.sequence),
    learningRate: positiveOption(values, 'lr', sizes.learningRate),
    momentum: numberOption(values, 'momentum', MOMENTUM, 'a number from 0 to below 1', (v) => v >= 0 && v < 1),
    seed: numberOption(values, 'seed', 0, 'a whole number', Number.isSafeInteger),
    out: values.out ?? null,
    heldOutMax: sizes.heldOutMax,
  }
}
