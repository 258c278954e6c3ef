/** A wait that a program has given up does not end the program, even if it rejects when its context, store, pool or group ends. Rule CAN-14 in rpc's SPEC.md. */
import { expect, test } from '@jest/globals'
import { script } from '../script.fixture.js'

const url = new URL('../fixtures/late-replies.js', import.meta.url)

test('CAN-14: a call whose context has ended ends neither the worker nor the main thread', async () => {
  const { code, out, err } = await script(url, 'contexts')
  const ends = 'returned early SHAPE_MISMATCH RangeError'
  expect({ out, err, code }).toEqual({ out: `${ends}\n${ends}\nalive\n`, err: '', code: 0 })
})

test('CAN-14: nor does what waits for a store, a pool or a group that the program ends', async () => {
  expect(await script(url, 'others')).toEqual({ out: 'alive alive\n', err: '', code: 0 })
})

test("CAN-14: a cluster that is closed in a finally does not hide the program's own error", async () => {
  const { code, err } = await script(url, 'closed')
  expect(err).toContain('Error: the real error')
  expect(err).not.toContain('CLUSTER_CLOSED')
  expect(code).toBe(1)
})

test('CAN-14: nor does a store that is closed in a finally, when Node reports both rejections in one turn', async () => {
  const { code, err } = await script(url, 'together')
  expect(err).toContain('Error: the real error')
  expect(err).not.toContain('STORE_CLOSED')
  expect(code).toBe(1)
})

test('CAN-14: who awaits it later is warned of nothing, and every other rejection ends the process as before', async () => {
  const { code, out, err } = await script(url, 'later')
  expect({ out, code }).toEqual({ out: 'CLUSTER_CLOSED\n', code: 1 })
  expect(err).toMatch(/^RangeError: another error/m)
  expect(err).not.toContain('Warning')
})

test('CAN-15: an error that nobody handles names the function, the callee and the line of the call', async () => {
  const [failure, timeout] = await Promise.all([script(url, 'fails', 'failure'), script(url, 'fails', 'timeout')])
  expect(failure.err).toMatch(
    /RangeError \(on worker 'b'\): it is wrong[\s\S]*--- above: on worker 'b', called as fails ---\n +at async awaitsFailure \(.*late-replies/,
  )
  expect(timeout.err).toMatch(/never: the call to worker 'b' ran for more than its timeout/)
})
