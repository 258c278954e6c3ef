/** Schedules as data: the actions of each named one, no deadlocks, errors, text forms, and costs as theory predicts. */
import { describe, expect, test } from '@jest/globals'
import { thrown } from '@postgrad/rpc/suite'
import fc from 'fast-check'
import { actionText, type PipelineAction, parseAction } from './action.js'
import { PIPELINE_SCHEDULES, type PipelineScheduleName, pipelineSchedule } from './generators.js'
import { forwardOnly, type PipelineSchedule, scheduleFromCsv, scheduleOf, withCommunications } from './schedule.js'
import { formatSchedule, scheduleToCsv, simulateSchedule } from './simulation.js'

const texts = ({ ranks }: PipelineSchedule): string[] => ranks.map((actions) => actions.map(actionText).join(' '))
const lists = (...rows: string[]): PipelineAction[][] => rows.map((row) => row.split(' ').map((text) => parseAction(text)!))

/** All that exist: 2 to 8 stages, 1 to 32 micro-batches. */
function* everySchedule(): Generator<
  readonly [where: string, schedule: PipelineSchedule, ranks: number, perRank: number, name: PipelineScheduleName]
> {
  for (const name of PIPELINE_SCHEDULES) {
    for (let ranks = 1; ranks <= 8; ranks++) {
      for (let stagesPerRank = 1; stagesPerRank * ranks <= 8; stagesPerRank++) {
        if (stagesPerRank * ranks < 2 || !takes(name, stagesPerRank)) continue
        for (let microbatches = 1; microbatches <= 32; microbatches++) {
          const rounds = Math.max(1, Math.floor(microbatches / ranks))
          if (name.startsWith('Interleaved') && microbatches % rounds !== 0) continue
          if (name === 'DualPipeV' && microbatches < 2 * ranks) continue
          const where = `${name}, ${ranks} ranks of ${stagesPerRank} stages, ${microbatches} micro-batches`
          yield [where, pipelineSchedule(name, { ranks, microbatches, stagesPerRank }), ranks, stagesPerRank, name]
        }
      }
    }
  }
}

function takes(name: PipelineScheduleName, stagesPerRank: number): boolean {
  if (name === 'GPipe' || name === '1F1B') return stagesPerRank === 1
  return (name !== 'ZBVZeroBubble' && name !== 'DualPipeV') || stagesPerRank === 2
}

describe('orders', () => {
  // By hand, from the definitions in the papers.
  test.each([
    ['GPipe', 2, 3, 1, ['0F0 0F1 0F2 0B0 0B1 0B2', '1F0 1F1 1F2 1B0 1B1 1B2']],
    ['1F1B', 2, 3, 1, ['0F0 0F1 0B0 0F2 0B1 0B2', '1F0 1B0 1F1 1B1 1F2 1B2']],
    ['LoopedBFS', 2, 2, 2, ['0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1', '1F0 1F1 3F0 3F1 3B0 3B1 1B0 1B1']],
    [
      'Interleaved1F1B',
      2,
      4,
      2,
      [
        '0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3',
        '1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3',
      ],
    ],
    ['InterleavedZeroBubble', 2, 3, 1, ['0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2', '1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2']],
    [
      'ZBVZeroBubble',
      2,
      3,
      2,
      [
        '0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 3F2 3I2 3W2 0I1 0W1 0I2 0W2',
        '1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1I1 2I2 1I2 1W1 2W2 1W2',
      ],
    ],
    [
      'DualPipeV',
      2,
      4,
      2,
      [
        '0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3 3B1 3F2 0B0 3B2 3F3 0B1 3B3 0I2 0W2 0I3 0W3',
        '1F0 2F0 1F1 2F1 1F2 2B0 2F2 1B0 1F3 2B1 2F3 1B1 2B2 1B2 2I3 1I3 2W3 1W3',
      ],
    ],
  ] as const)('PIP-1 %s of %d ranks and %d micro-batches', (name, ranks, microbatches, stagesPerRank, expected) => {
    expect(texts(pipelineSchedule(name, { ranks, microbatches, stagesPerRank }))).toEqual(expected)
  })

  test('PIP-1 as PyTorch: rounds of micro-batches that ranks do not divide', () => {
    const { ranks } = pipelineSchedule('Interleaved1F1B', { ranks: 4, microbatches: 10 })
    // Two rounds of five.
    expect(ranks[0]!.slice(0, 12).map(actionText).join(' ')).toBe('0F0 0F1 0F2 0F3 0F4 4F0 4F1 4F2 4F3 4F4 0F5 0F6')
  })

  test('PIP-2 every schedule is complete, ascends in micro-batches on each stage, and comes to its end with all communications blocking', () => {
    let count = 0
    for (const [where, schedule, ranks, perRank] of everySchedule()) {
      count++
      try {
        const lowered = withCommunications(schedule)
        const { duration } = simulateSchedule(lowered)
        if (!(duration > 0)) throw new Error('no time passed')
        if (![1, 6, 16].includes(schedule.microbatches)) continue
        expect(JSON.stringify(scheduleOf(lowered.ranks))).toBe(JSON.stringify(lowered))
        expect(schedule.stages).toBe(ranks * perRank)
        for (const actions of schedule.ranks)
          for (let stage = 0; stage < schedule.stages; stage++)
            for (const kind of ['F', 'I', 'W', 'B']) {
              const order = actions.filter((action) => action.stage === stage && action.kind === kind).map(({ microbatch }) => microbatch)
              expect(order.every((microbatch, i) => i === 0 || microbatch > order[i - 1]!)).toBe(true)
            }
        simulateSchedule(forwardOnly(lowered))
      } catch (error) {
        throw new Error(where, { cause: error })
      }
    }
    expect(count).toBeGreaterThan(1500)
  })
})

describe('costs', () => {
  test('PIP-3 bubbles of GPipe and 1F1B are (p − 1) / (m + p − 1), whatever forward and backward cost', () => {
    for (const name of ['GPipe', '1F1B'] as const)
      for (const ranks of [1, 2, 4, 8])
        for (const microbatches of [8, 13, 32])
          for (const B of [1, 2, 3.5]) {
            const { bubble } = simulateSchedule(pipelineSchedule(name, { ranks, microbatches }), { B })
            expect(bubble).toBeCloseTo((ranks - 1) / (microbatches + ranks - 1), 12)
          }
  })

  test('PIP-3 loops divide the bubble by the stages of a rank, and the parts of backward fill it', () => {
    const bubble = (name: PipelineScheduleName, stagesPerRank: number) =>
      simulateSchedule(pipelineSchedule(name, { ranks: 4, microbatches: 16, stagesPerRank })).bubble
    const idle = (v: number) => 3 / (16 * v + 3)
    expect(bubble('Interleaved1F1B', 2)).toBeCloseTo(idle(2), 12)
    expect(bubble('LoopedBFS', 2)).toBeCloseTo(idle(2), 12)
    // One unit for each hop is left, of the three that a micro-batch costs.
    expect(bubble('ZBVZeroBubble', 2)).toBeCloseTo(3 / (3 * 32 + 3), 12)
    expect(bubble('DualPipeV', 2)).toBeCloseTo(3 / (3 * 32 + 3), 12)
    expect(bubble('InterleavedZeroBubble', 1)).toBeLessThan(0.6 * bubble('1F1B', 1))
  })

  test('PIP-4 activations: GPipe holds all, 1F1B at most one for each rank from it on', () => {
    for (const [ranks, microbatches] of [
      [4, 8],
      [8, 32],
      [4, 2],
    ] as const) {
      const peaks = (name: PipelineScheduleName) => simulateSchedule(pipelineSchedule(name, { ranks, microbatches })).peakActivations
      expect(peaks('GPipe')).toEqual(Array.from({ length: ranks }, () => microbatches))
      expect(peaks('1F1B')).toEqual(Array.from({ length: ranks }, (_, rank) => Math.min(ranks - rank, microbatches)))
    }
  })
})

describe('what is refused', () => {
  test.each([
    ['1F1B', { ranks: 2, microbatches: 4, stagesPerRank: 2 }, 'one stage per rank'],
    ['ZBVZeroBubble', { ranks: 2, microbatches: 4, stagesPerRank: 3 }, 'two stages per rank'],
    ['Interleaved1F1B', { ranks: 2, microbatches: 5 }, 'micro-batches that make 2 equal rounds'],
    ['GPipe', { ranks: 0, microbatches: 5 }, 'a whole number of ranks from 1 on'],
    ['GPipe', { ranks: 2, microbatches: 1.5 }, 'a whole number of microbatches from 1 on'],
    ['DualPipe', { ranks: 2, microbatches: 4 }, 'one of GPipe'],
    ['DualPipeV', { ranks: 2, microbatches: 4, stagesPerRank: 1 }, 'two stages per rank'],
    ['DualPipeV', { ranks: 3, microbatches: 5 }, 'at least as many micro-batches as stages, 6'],
  ])('PIP-5 %s of %j', (name, sizes, expected) => {
    const error = thrown(() => pipelineSchedule(name as PipelineScheduleName, sizes))
    expect([error.code, error.message]).toEqual(['SCHEDULE_UNSUPPORTED', expect.stringContaining(expected)])
  })

  test.each([
    ['a stage on two ranks', ['0F0 0B0', '0F1 0B1'], 'stage 0 on one rank'],
    ['an action twice', ['0F0 0F0 0B0'], '0F0 once'],
    ['a backward before its forward', ['0B0 0F0'], '0F0 before 0B0'],
    ['a weight part before the input part', ['0F0 0W0 0I0'], '0I0 before 0W0'],
    ['no forward', ['0F0 0B0', '1F0 1B0 1F1 1B1'], 'a forward of stage 0 and micro-batch 1'],
    ['no backward', ['0F0 0B0', '1F0'], 'one backward of stage 1'],
    ['a half backward', ['0F0 0I0'], 'one backward of stage 0'],
    ['two backwards', ['0F0 0B0 0I0 0W0'], 'one backward of stage 0'],
    ['some communications', ['0F0 0SEND_F0 0B0', '1F0 1B0'], 'all communications or none'],
    ['a communication with itself', ['0F0 0SEND_F0 1F0 1B0 0B0'], 'between stages of different ranks'],
  ])('PIP-5 %s', (_, rows, expected) => {
    const error = thrown(() => scheduleOf(lists(...rows)))
    expect([error.code, error.message]).toEqual(['SCHEDULE_INVALID', expect.stringContaining(expected)])
  })

  test('PIP-6 ranks that wait for each other, with what each waits for', () => {
    const schedule = scheduleOf(lists('0F0 0B0 0F1 0B1', '1F1 1B1 1F0 1B0'))
    const error = thrown(() => simulateSchedule(schedule))
    expect(error.code).toBe('SCHEDULE_DEADLOCK')
    expect(error.values).toEqual({
      waits: [
        { rank: 0, action: '0B0', needs: '1B0' },
        { rank: 1, action: '1F1', needs: '0F1' },
      ],
    })
    // The same lists, receives blocking.
    expect(thrown(() => simulateSchedule(withCommunications(schedule))).values).toEqual({
      waits: [
        { rank: 0, action: '0RECV_B0', needs: '1SEND_B0' },
        { rank: 1, action: '1RECV_F1', needs: '0SEND_F1' },
      ],
    })
  })

  test('PIP-6 the error names the function that was called', () => {
    const schedule = scheduleOf(lists('0F0 0B0 0F1 0B1', '1F1 1B1 1F0 1B0'))
    for (const [op, fn] of Object.entries({ simulateSchedule, formatSchedule, scheduleToCsv })) {
      const { message } = thrown(() => fn(schedule))
      expect(message).toContain(`${op}: these ranks would wait for ever: rank 0 at 0B0 for 1B0, rank 1 at 1F1 for 0F1.`)
    }
  })
})

describe('text', () => {
  test('PIP-7 as a grid and as CSV: a row for each rank, gaps empty', () => {
    const schedule = pipelineSchedule('1F1B', { ranks: 2, microbatches: 2 })
    expect(formatSchedule(schedule)).toBe('rank 0  0F0 0F1     0B0     0B1\nrank 1      1F0 1B0 1F1 1B1')
    expect(scheduleToCsv(schedule)).toBe('0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n')
    expect(texts(withCommunications(schedule))).toEqual([
      '0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1',
      '1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1',
    ])
  })

  test('PIP-7 what was dumped is loaded again', () => {
    const named = fc.constantFrom(...PIPELINE_SCHEDULES)
    fc.assert(
      fc.property(named, fc.integer({ min: 1, max: 4 }), fc.integer({ min: 2, max: 12 }), fc.boolean(), (name, ranks, rounds, lower) => {
        const made = pipelineSchedule(name, { ranks, microbatches: ranks * rounds })
        const schedule = lower ? withCommunications(made) : made
        expect(scheduleFromCsv(scheduleToCsv(schedule))).toEqual(schedule)
      }),
      { numRuns: 40 },
    )
  })

  test("PIP-7 as PyTorch's files: what overlaps comes one after the other, sharding and reduction are left out", () => {
    const csv = '0UNSHARD,0F0,0F1,(0F2;0B0)OVERLAP_F_B,0I1,0W1,,0B2,0REDUCE_GRAD,0RESHARD\n'
    expect(texts(scheduleFromCsv(csv))).toEqual(['0F0 0F1 0F2 0B0 0I1 0W1 0B2'])
  })

  test('PIP-5 numbers that are too large are refused before anything is made of them', () => {
    const error = thrown(() => scheduleFromCsv('0F0,900000000F0\n'))
    expect([error.code, error.message]).toEqual(['SCHEDULE_INVALID', expect.stringContaining('2 actions for 900000001 stages')])
  })

  test('PIP-7 what is no action', () => {
    const error = thrown(() => scheduleFromCsv('0F0,0X0\n'))
    expect([error.code, error.message]).toEqual(['SCHEDULE_INVALID', expect.stringContaining("'0X0'")])
    expect(thrown(() => scheduleFromCsv('')).code).toBe('SCHEDULE_INVALID')
  })
})
