/** Slurm's lists of hosts, against what `scontrol show hostnames` prints for them. */
import { describe, expect, test } from '@jest/globals'
import { expandNodeList } from './slurm-nodes.js'

describe('expandNodeList', () => {
  test.each([
    ['node1', ['node1']],
    ['node1,login', ['node1', 'login']],
    ['node[01-03,07]', ['node01', 'node02', 'node03', 'node07']],
    ['node[9-11]', ['node9', 'node10', 'node11']],
    ['node[099-101]', ['node099', 'node100', 'node101']],
    ['a[1-2],b,c[3]', ['a1', 'a2', 'b', 'c3']],
    ['rack[1-2]n[1,3].lan', ['rack1n1.lan', 'rack1n3.lan', 'rack2n1.lan', 'rack2n3.lan']],
    ['x-y[0-1]', ['x-y0', 'x-y1']],
  ])('CLI-5 %s', (list, hosts) => {
    expect(expandNodeList(list, 'SLURM_JOB_NODELIST')).toEqual(hosts)
  })

  test.each([
    ['', /a name is missing/],
    ['a,,b', /a name is missing/],
    ['node[1-3', /not closed/],
    ['node1-3]', /closes nothing/],
    ['node[1-[2]]', /inside of brackets/],
    ['node[3-1]', /backwards/],
    ['node[]', /not a number or a range/],
    ['node[a-b]', /not a number or a range/],
    ['node[1-]', /not a number or a range/],
    ['node[0-65536]', /more than 65536/],
    ['a[1-1000]b[1-1000]', /more than 65536/],
    ['a[1-60000],b[1-60000]', /more than 65536/],
  ])('CLI-5 %j is refused', (list, message) => {
    expect(() => expandNodeList(list, 'SLURM_JOB_NODELIST')).toThrow(
      expect.objectContaining({ code: 'NODE_LIST_INVALID', message: expect.stringMatching(message) }),
    )
  })
})
