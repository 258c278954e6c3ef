/**
 * The file that piscina loads: it imports `job-thread.js` at the first task, and is CommonJS for that reason alone.
 *
 * piscina `require`s its file, and Node 20 aborts the whole process when a thread is terminated while `require` links an ES module
 * ("v8::Module::IsGraphAsync must be used on an instantiated module"). A thread that is terminated while `import()` does so just ends.
 */
import type run from './job-thread.js' with { 'resolution-mode': 'import' }

let entry: Promise<{ default: typeof run }> | null = null

module.exports = async (task: Parameters<typeof run>[0]): Promise<unknown> => {
  entry ??= import('./job-thread.js')
  return (await entry).default(task)
}
