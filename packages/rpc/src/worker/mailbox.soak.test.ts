/** Mailboxes that are full, under many seeds: `npm run soak -- --seeds 100 worker/mailbox`. */
import './mailbox.sim.test.js'
