/** Loaded while timers are faked. */
import { t } from './mutation.mjs'

export const loadedWhileTimersAreFaked = [
  t(
    'fake-timers-unwarned',
    'packages/base/src/time/real-time.real.test.ts',
    'CLK-3 timers or ticks',
    'packages/base/src/time/real-time.ts',
    "if ('clock' in setImmediate || 'clock' in nextTick)",
    "if ('clock' in setImmediate)",
    'a program whose ticks are faked waits for ever without a word',
  ),
  t(
    'fake-timers-warned-by-a-tick',
    'packages/base/src/time/real-time.real.test.ts',
    'CLK-3 timers or ticks',
    'packages/base/src/time/real-time.ts',
    "process.emit('warning', Object.assign(new Error(message), { name: 'Warning', code: 'POSTGRAD_FAKE_TIMERS' }))",
    "process.emitWarning(message, { code: 'POSTGRAD_FAKE_TIMERS' })",
    'the warning of faked ticks waits for a tick',
  ),
]
