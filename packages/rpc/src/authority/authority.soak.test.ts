/** Forged messages of those who may do little, many: `npm run soak -- --seeds 10000 authority/authority`. */
import './authority.sim.test.js'
