export { EndOfTurn } from './end-of-turn.js'
export { CLOSED_BY_PEER, CLOSED_BY_SELF, linkClosedError } from './link-errors.js'
export { PostReader, PostWriter } from './post.js'
