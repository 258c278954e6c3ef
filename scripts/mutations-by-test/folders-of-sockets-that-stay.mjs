/** Folders of sockets that stay. */
import { t } from './mutation.mjs'

export const foldersOfSocketsThatStay = [
  t(
    'socket-folder-left-unsaid',
    'packages/cluster/src/processes/socket-folder.real.test.ts',
    'CLU-95 a folder that cannot be removed',
    'packages/cluster/src/processes/socket-folder.ts',
    'if (expected.includes(code)) return',
    'if (code !== undefined) return',
    'a folder that the system does not let go stays without a word',
  ),
  t(
    'socket-folder-gone-warned',
    'packages/cluster/src/processes/socket-folder.real.test.ts',
    'CLU-95 a folder that cannot be removed',
    'packages/cluster/src/processes/socket-folder.ts',
    "['ENOENT', 'ENOTEMPTY', 'EEXIST']",
    "['EEXIST']",
    'a process warns of a folder that another process has removed',
  ),
]
