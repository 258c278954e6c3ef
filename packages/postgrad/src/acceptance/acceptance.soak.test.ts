/** The acceptance cases on threads, each many times: `npm run soak -- --runs 50 postgrad/dist/acceptance`. */
import './acceptance.real.test.js'
