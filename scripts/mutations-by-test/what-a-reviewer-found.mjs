/** What a reviewer found: a dataset of the wrong function, deadlines under a debugger that comes and goes. */
import { t } from './mutation.mjs'

export const whatAReviewerFound = [
  t(
    'dataset-of-a-namesake',
    'packages/data/src/workers.real.test.ts',
    'where two exports are functions of one name',
    'packages/data/src/worker-dataset.ts',
    'meant.size < 2',
    'meant.size > 0',
    'workers load the dataset of another export whose function has the same name',
  ),
  t(
    'dataset-name-of-either',
    'packages/data/src/workers.real.test.ts',
    'where two exports are functions of one name',
    'packages/data/src/worker-dataset.ts',
    "source.nameOf === 'export' ? module[source.name] :",
    '',
    'the name of an export is taken for that of a function',
  ),
  t(
    'inspector-told-once',
    'packages/cluster/src/main/inspector.real.test.ts',
    'CLU-115',
    'packages/base/src/inspected.ts',
    'Number(isOpen)',
    '1',
    'a thread that an open inspector was told to keeps no deadline after the inspector is closed',
  ),
]
