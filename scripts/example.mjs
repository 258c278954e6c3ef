/** `npm run example NAME -- …`: set-up, then one of the examples; without a name it lists them. Later arguments go to the example. */
import { runApp } from './run-app.mjs'
import { setupOrExit } from './setup.mjs'

/** Name → what it shows. Each is a folder of apps/examples/src with a main.ts. */
const EXAMPLES = {
  'char-lm': 'a character-level language model over three workers (as npm start)',
  ddp: 'a small CNN trained by replicas on several trainers: DistributedDataParallel',
  'ddp-elastic': 'the same while a trainer is killed and another joins: nobody else is started again',
  'ddp-hybrid': 'an embedding table on a parameter server, the dense part in replicas: DDP and RPC together',
  'design-note': "the two programs of PyTorch's documents on distributed autograd",
  mlp: 'an MLP whose layers are remote modules on workers of their own',
  pipeline: 'a transformer in stages: micro-batches go through them as a schedule says, drawn as planned and as measured',
  'parameter-server': 'large embedding tables on a server, of which only rows travel; trainers step together or alone',
  rl: 'an agent learns to balance a pole from many observers: calls, batched calls, jobs',
  rnn: 'a recurrent network over two workers: embedding and decoder on a server, the LSTM at the trainer',
}

const [name, ...rest] = process.argv.slice(2)
const list = Object.entries(EXAMPLES)
  .map(([one, what]) => `  ${one.padEnd(17)} ${what}`)
  .join('\n')
if (name === undefined || name === '--help') {
  console.log(`Usage: npm run example NAME -- [options]\n\nExamples:\n${list}\n\nWhat can be changed: npm run example NAME -- --help`)
} else if (!Object.hasOwn(EXAMPLES, name)) {
  console.error(`npm run example: there is no example '${name}'. There are:\n${list}\nTry: npm run example rl -- --help`)
  process.exitCode = 2
} else {
  await setupOrExit({ say: console.error })
  process.argv = [...process.argv.slice(0, 2), ...rest]
  await runApp(`apps/examples/dist/${name}/main.js`)
}
