/** How the lineage grows over many messages: `npm run soak -- --messages 10000 lineage/lineage`. */
import './lineage.sim.test.js'
import './lineage.test.js'
