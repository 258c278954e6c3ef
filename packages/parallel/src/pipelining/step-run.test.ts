/** One worker's side of a step, with a link that only logs: values are sent before the next computation begins. */
import { expect, test } from '@jest/globals'
import { Module } from '@postgrad/nn'
import { ones, type Tensor } from '@postgrad/tensor'
import { type PipelineScheduleName, pipelineSchedule } from './generators.js'
import { withCommunications } from './schedule.js'
import { PipelineStage } from './stage.js'
import type { StageLink } from './stage-link.js'
import { StepRun } from './step-run.js'

const NEVER = new Promise<never>(() => {})

/** Rank 0's log, of two, until it waits for a gradient. */
async function logged(name: PipelineScheduleName): Promise<string[]> {
  const log: string[] = []
  const forward = (x: Tensor) => {
    log.push('F')
    return x
  }
  const module = Object.assign(new (class extends Module {})(), { forward })
  const schedule = withCommunications(pipelineSchedule(name, { ranks: 2, microbatches: 3 }))
  const link: StageLink = {
    send: (key) => void log.push(key),
    receive: (_, key) => {
      log.push(`asks for ${key}`)
      return NEVER
    },
    done: () => {},
    doneAt: () => NEVER,
    end: () => {},
  }
  const clock = {
    now: () => 0,
    setTimer: () => ({ cancel: () => {} }),
    defer: (fn: () => void) => {
      log.push('turn')
      setImmediate(fn)
    },
  }
  const worker = { id: 1, name: 'worker1' }
  const run = new StepRun({
    schedule,
    rank: 0,
    stages: new Map([[0, new PipelineStage(module, 0, 2)]]),
    workerOf: () => worker as never,
    workers: [worker as never],
    link,
    clock,
    training: true,
    loss: undefined,
    scaleGrads: true,
    inputSpec: undefined,
    kwargsSpec: undefined,
    targetSpec: undefined,
    outputSpec: undefined,
  })
  void run.all({ inputs: [ones([3, 1])], target: undefined, kwargs: undefined, returnOutputs: true })
  while (run.current !== '0RECV_B0') await new Promise((resolve) => setImmediate(resolve))
  return log
}

test('PIP-16 what a forward makes leaves in a turn before the next one begins, and all is asked for at first', async () => {
  const asked = ['asks for 1SEND_B0', 'asks for 1SEND_B1', 'asks for 1SEND_B2']
  const forward = (microbatch: number) => ['turn', 'F', `0SEND_F${microbatch}`]
  expect(await logged('GPipe')).toEqual([...asked, ...forward(0), ...forward(1), ...forward(2)])
  expect(await logged('1F1B')).toEqual([...asked, ...forward(0), ...forward(1)])
})
