/** Random programs of references, many: `npm run soak -- --seeds 10000 rref-programs`. */
import './rref-programs.sim.test.js'
