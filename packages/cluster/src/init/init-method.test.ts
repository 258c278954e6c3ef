/** Where a group's processes meet. */
import { describe, expect, test } from '@jest/globals'
import { masterPort, placeOf, whereOf } from './init-method.js'

const TORCHRUN = { MASTER_ADDR: 'node1', MASTER_PORT: '29500', RANK: '2', WORLD_SIZE: '4' }

describe('INI-1 the place of a process', () => {
  test('follows from the variables that torchrun sets', () => {
    expect(placeOf({}, { ...TORCHRUN, TORCHELASTIC_RESTART_COUNT: '3' })).toEqual({
      meeting: { kind: 'tcp', host: 'node1', port: 29500 },
      rank: 2,
      worldSize: 4,
      round: 3,
    })
  })

  test('INI-20 is met on the next port where the agent of torchrun listens on MASTER_PORT itself', () => {
    const agent = { TORCHELASTIC_USE_AGENT_STORE: 'True' }
    expect(placeOf({}, { ...TORCHRUN, ...agent }).meeting).toEqual({ kind: 'tcp', host: 'node1', port: 29_501 })
    expect(placeOf({ initMethod: 'tcp://node1:29500' }, { ...TORCHRUN, ...agent }).meeting).toMatchObject({ port: 29_500 })
    expect([masterPort(65_535, agent), masterPort(29_500, { TORCHELASTIC_USE_AGENT_STORE: 'False' })]).toEqual([65_534, 29_500])
  })

  test('may be met at an IPv6 address, with brackets or without', () => {
    for (const MASTER_ADDR of ['::1', '[::1]']) {
      const { meeting } = placeOf({}, { ...TORCHRUN, MASTER_ADDR })
      expect([meeting, whereOf(meeting)]).toEqual([{ kind: 'tcp', host: '::1', port: 29_500 }, '[::1]:29500'])
    }
  })

  test('is what the options say, where they do', () => {
    const place = placeOf({ initMethod: 'tcp://[::1]:4000', rank: 0, worldSize: 1 }, TORCHRUN)
    expect(place).toEqual({ meeting: { kind: 'tcp', host: '::1', port: 4000 }, rank: 0, worldSize: 1, round: 0 })
    expect([whereOf(place.meeting), whereOf(placeOf({}, TORCHRUN).meeting)]).toEqual(['[::1]:4000', 'node1:29500'])
    expect(placeOf({ initMethod: 'file:///tmp/meet%20here' }, TORCHRUN).meeting).toEqual({ kind: 'file', path: '/tmp/meet here' })
  })

  test('has no fixed size where none is said', () => {
    expect(placeOf({ initMethod: 'tcp://a:1' }, {})).toMatchObject({ rank: null, worldSize: null })
    expect(placeOf({ initMethod: 'tcp://a:1', rank: 0 }, {})).toMatchObject({ rank: 0, worldSize: null })
  })

  test.each([
    [{}, {}, 'no MASTER_ADDR and no MASTER_PORT'],
    [{}, { ...TORCHRUN, MASTER_PORT: '' }, 'no MASTER_PORT'],
    [{}, { ...TORCHRUN, MASTER_PORT: '70000' }, 'a port from 1 to 65535'],
    [{}, { ...TORCHRUN, RANK: undefined }, 'set RANK in the environment'],
    [{}, { ...TORCHRUN, RANK: 'x' }, 'NaN'],
    [{}, { ...TORCHRUN, RANK: '4' }, 'below worldSize (4)'],
    [{ initMethod: 'http://a:1' }, TORCHRUN, "'tcp://host:port'"],
    [{ initMethod: 'tcp://a' }, TORCHRUN, "'tcp://host:port'"],
    [{ worldSize: 0 }, TORCHRUN, 'from 1 to'],
    ...[
      'file://relative/store',
      'file://host/path',
      'file:///path?round=1',
      'file:///path#part',
      'file:///a%2Fb',
      'file:///a%00b',
      'file:///100%',
      'file:///%ff',
      'file:rel/store',
      'tcp://user:secret@a:1',
      'tcp://user:p@secret@a:1',
      'tcp://user:pa/secret@a:1',
      'tcp://a:1?password=secret',
      'tcp://user@a:1',
      'tcp://a:1/path',
      'tcp://a:1?x=1',
      'tcp://a:1#x',
    ].map((initMethod) => [{ initMethod }, TORCHRUN, "'file:///path', got"] as const),
  ])('%j with %j is refused with what is missing', (options, env, text) => {
    expect(() => placeOf(options, env)).toThrow(text)
    expect(() => placeOf(options, env)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
    expect(() => placeOf(options, env)).not.toThrow('secret')
  })

  test('a slash at the end of a TCP address means nothing', () => {
    expect(placeOf({ initMethod: 'tcp://a:1/' }, {}).meeting).toEqual({ kind: 'tcp', host: 'a', port: 1 })
  })
})
