/** A process whose program is over while its helper thread sleeps. */
import { threadHeap } from '../../../heap/thread-heap.js'
import { helperCounts, withThreadLimits } from './compute-threads.js'
import { withHelpers } from './programs.fixture.js'

threadHeap()
withThreadLimits({ cores: 2, sharedWork: 1 })
await withHelpers(2)
console.log(`${helperCounts().ready} helper computes`)
