/** The acceptance cases on threads, each many times, and the deep chain of calls: `npm run soak -- --runs 50 postgrad/dist/acceptance`. */
import './acceptance-ping-pong.real.test.js'
import './acceptance.real.test.js'
