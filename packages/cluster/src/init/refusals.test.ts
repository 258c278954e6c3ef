/** Which refusals a user learns of, and that nobody can fill a log. */
import { expect, test } from '@jest/globals'
import { PostgradError } from '@postgrad/base'
import type { Clock } from '@postgrad/transport'
import { Refusals } from './refusals.js'

function setUp() {
  let nowMs = 0
  const said: string[] = []
  const refusals = new Refusals({ now: () => nowMs } as Clock, (error) => said.push(error.message))
  const note = (from: string, code = 'AUTH_FAILED', reason = 'key') =>
    refusals.note(from, new PostgradError(code, { op: 'accept', message: 'secret of the other end', values: { reason } }))
  return { refusals, said, note, later: (ms: number) => (nowMs += ms) }
}

test('INI-22 a refusal is reported with its address, code and reason, and nothing of the error', () => {
  const { said, note } = setUp()
  note('10.0.0.2')
  note('10.0.0.2', 'VERSION_MISMATCH', 'version')
  note('10.0.0.3', 'AUTH_FAILED', 'a reason of no table')
  expect(said).toEqual([
    'init: refused a connection from 10.0.0.2: AUTH_FAILED (its key differs).',
    'init: refused a connection from 10.0.0.2: VERSION_MISMATCH (its version of postgrad differs).',
    'init: refused a connection from 10.0.0.3: AUTH_FAILED.',
  ])
})

test('INI-22 one address is reported once a minute, and all together five times; the next report counts the others', () => {
  const { refusals, said, note, later } = setUp()
  for (let i = 0; i < 1000; i++) note(`10.0.0.${i % 10}`)
  expect(said).toHaveLength(5)
  later(60_000)
  note('10.0.0.1')
  expect(said.slice(5)).toEqual([
    'init: refused a connection from 10.0.0.1: AUTH_FAILED (its key differs); 995 more since the last report.',
  ])
  expect(refusals.summary).toBe('; 1001 connections were refused, the last from 10.0.0.1: AUTH_FAILED')
})

test('INI-22 a process that waited in vain counts its refusals, by code', () => {
  const { refusals, note } = setUp()
  expect(refusals.summary).toBe('')
  note('10.0.0.2')
  note('10.0.0.3', 'CLUSTER_MISMATCH', 'cluster')
  expect(refusals.summary).toBe(
    '; 1 connection from 10.0.0.2 was refused: AUTH_FAILED; 1 connection from 10.0.0.3 was refused: CLUSTER_MISMATCH',
  )
})
