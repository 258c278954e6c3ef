/** For tests on real threads, here and in packages above: clusters that end with their test, and scripts in a process of their own. */
export { launcher } from './clusters.fixture.js'
export { type ScriptEnd, script, scriptToHead } from './script.fixture.js'
