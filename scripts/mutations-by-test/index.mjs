/**
 * The mutations of `npm run mutate` that a test catches, a file for each subject; `mutation.mjs` says what one is. Those that a suite catches from a seed stand in `../mutations.mjs`.
 */

import { aModuleThatWaitsForItself } from './a-module-that-waits-for-itself.mjs'
import { backends } from './backends.mjs'
import { booleansAsOperands } from './booleans-as-operands.mjs'
import { budgets } from './budgets.mjs'
import { bundlesAndTypes } from './bundles-and-types.mjs'
import { chains } from './chains.mjs'
import { checkpoints } from './checkpoints.mjs'
import { customFunctionsAndWritesNextToPytorch } from './custom-functions-and-writes-next-to-pytorch.mjs'
import { ends } from './ends.mjs'
import { errorsThatExplainThemselves } from './errors-that-explain-themselves.mjs'
import { filesThatOthersOwn } from './files-that-others-own.mjs'
import { foldersOfSocketsThatStay } from './folders-of-sockets-that-stay.mjs'
import { gradientsThatHooksWriteInto } from './gradients-that-hooks-write-into.mjs'
import { gradientsThatStay } from './gradients-that-stay.mjs'
import { graphsNextToPytorch } from './graphs-next-to-pytorch.mjs'
import { howProgramsAreFound } from './how-programs-are-found.mjs'
import { lateMessages } from './late-messages.mjs'
import { loadedWhileTimersAreFaked } from './loaded-while-timers-are-faked.mjs'
import { modulesLoseNothing } from './modules-lose-nothing.mjs'
import { oneEntry } from './one-entry.mjs'
import { operands } from './operands.mjs'
import { operationsOfOneEntry } from './operations-of-one-entry.mjs'
import { pipelinesAndCollectives } from './pipelines-and-collectives.mjs'
import { ranksThatReturn } from './ranks-that-return.mjs'
import { replicas } from './replicas.mjs'
import { sumsWithoutAnOrder } from './sums-without-an-order.mjs'
import { tensorsAnywhere } from './tensors-anywhere.mjs'
import { theContextOfWhatIsServed } from './the-context-of-what-is-served.mjs'
import { theDoorForBytes } from './the-door-for-bytes.mjs'
import { theEndOfAWorker } from './the-end-of-a-worker.mjs'
import { theReadingOfData } from './the-reading-of-data.mjs'
import { theTracer } from './the-tracer.mjs'
import { viewsWhoseWayBackIsNotKnown } from './views-whose-way-back-is-not-known.mjs'
import { waitsWithoutEnd } from './waits-without-end.mjs'
import { whatACallerConstructs } from './what-a-caller-constructs.mjs'
import { whatAPeerMaySend } from './what-a-peer-may-send.mjs'
import { whatAReviewOfTheseRepairsFound } from './what-a-review-of-these-repairs-found.mjs'
import { whatAReviewerFound } from './what-a-reviewer-found.mjs'
import { whatAnErrorCosts } from './what-an-error-costs.mjs'
import { whatNobodyNotices } from './what-nobody-notices.mjs'
import { whatTheBenchMeasures } from './what-the-bench-measures.mjs'

export const MUTATIONS_BY_TEST = [
  ...errorsThatExplainThemselves,
  ...filesThatOthersOwn,
  ...theDoorForBytes,
  ...sumsWithoutAnOrder,
  ...theEndOfAWorker,
  ...pipelinesAndCollectives,
  ...replicas,
  ...ranksThatReturn,
  ...whatAPeerMaySend,
  ...budgets,
  ...ends,
  ...waitsWithoutEnd,
  ...whatNobodyNotices,
  ...bundlesAndTypes,
  ...howProgramsAreFound,
  ...modulesLoseNothing,
  ...viewsWhoseWayBackIsNotKnown,
  ...gradientsThatStay,
  ...graphsNextToPytorch,
  ...whatACallerConstructs,
  ...aModuleThatWaitsForItself,
  ...whatTheBenchMeasures,
  ...whatAReviewerFound,
  ...customFunctionsAndWritesNextToPytorch,
  ...whatAReviewOfTheseRepairsFound,
  ...gradientsThatHooksWriteInto,
  ...whatAnErrorCosts,
  ...booleansAsOperands,
  ...lateMessages,
  ...loadedWhileTimersAreFaked,
  ...foldersOfSocketsThatStay,
  ...checkpoints,
  ...theContextOfWhatIsServed,
  ...theReadingOfData,
  ...tensorsAnywhere,
  ...theTracer,
  ...oneEntry,
  ...operands,
  ...backends,
  ...chains,
  ...operationsOfOneEntry,
]
