/** For tests on real threads and processes, here and in packages above: clusters that end with their test, groups of processes, and scripts in their own process. */
export { launcher } from './clusters.fixture.js'
export { ProgramGroup } from './init/program-group.fixture.js'
export { type ScriptEnd, script, scriptToHead } from './script.fixture.js'
