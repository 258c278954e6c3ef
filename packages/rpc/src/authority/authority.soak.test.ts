/** Many forged messages of a restricted role: `npm run soak -- --seeds 10000 authority/authority`. */
import './authority.sim.test.js'
