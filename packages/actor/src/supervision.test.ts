/** Tests dead letters and liveness: a worker's notes on failures. */
import { expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { workerDied } from '@postgrad/base/internal'
import { DeadLetters } from './dead-letters.js'
import { Liveness, type NoticedDeath } from './liveness.js'

const death: NoticedDeath = { worker: { name: 'ps', id: 3 }, cause: 'exited', detail: 'exit code 1', atMs: 7 }

test('dead letters are counted for ever, and only the last few kept', () => {
  const letters = new DeadLetters(3)
  for (let i = 0; i < 5; i++) letters.add({ reason: 'tombstone', atMs: i, from: 'a', what: `letter ${i}` })
  letters.add({ reason: 'stopped', atMs: 5, from: null, what: 'letter 5' })
  expect(letters.counts).toMatchObject({ tombstone: 5, stopped: 1, expired: 0 })
  expect(letters.total).toBe(6)
  expect(letters.last().map((letter) => letter.atMs)).toEqual([3, 4, 5])
})

test('dead letters that nobody keeps are counted all the same', () => {
  const letters = new DeadLetters(0)
  letters.add({ reason: 'expired', from: null, what: 'a call', atMs: 1 })
  expect({ total: letters.total, last: letters.last() }).toEqual({ total: 1, last: [] })
})

test('several watchers of one death that throw are told together', () => {
  const liveness = new Liveness()
  for (const name of ['one', 'two']) {
    liveness.watch(() => {
      throw new Error(name)
    })
  }
  expect(() => liveness.report(death)).toThrow(AggregateError)
})

test('a death is news once, and all watchers hear it though one throws', () => {
  const liveness = new Liveness()
  const heard: string[] = []
  liveness.watch((d) => heard.push(`first ${d.worker.name}`))
  liveness.watch(() => {
    throw new Error('watcher')
  })
  const remove = liveness.watch((d) => heard.push(`third ${d.worker.name}`))
  expect(() => liveness.report(death)).toThrow('watcher')
  expect(heard).toEqual(['first ps', 'third ps'])
  expect(liveness.report({ ...death, cause: 'link-closed' })).toBe(false)
  remove()
  expect(() => liveness.report({ ...death, worker: { name: 'ps', id: 4 } })).toThrow('watcher')
  expect(heard).toEqual(['first ps', 'third ps', 'first ps'])
  expect(liveness.deathOf(3)).toBe(death)
  expect(liveness.all.map((d) => d.worker.id)).toEqual([3, 4])
})

test('the error of a death names the worker, the cause and the remedy', () => {
  const error = workerDied('call', death)
  expect(isPostgradError(error, 'WORKER_DIED')).toBe(true)
  expect(error.message).toContain("call: worker 'ps' (id 3) died: exited, exit code 1. ")
  expect(error.values).toEqual({ worker: 'ps', workerId: 3, cause: 'exited', detail: 'exit code 1' })
  expect(error.remedy).toBeDefined()
})
