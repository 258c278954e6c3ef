/**
 * The errors and sentences that all links share, so that every kind of link words its errors alike.
 */
import { PostgradError } from '@postgrad/base'
import type { LinkClosed } from './link.js'

export const CLOSED_BY_SELF: LinkClosed = { by: 'self', detail: 'this end of the link was closed' }
export const CLOSED_BY_PEER: LinkClosed = { by: 'peer', detail: 'the other end of the link was closed, or its thread ended' }

export function linkClosedError(link: string, reason: LinkClosed): PostgradError {
  return new PostgradError('LINK_CLOSED', {
    op: 'link.send',
    expected: 'an open link',
    got: reason.detail,
    remedy: 'The message was not sent. Later calls to that worker fail with WORKER_DIED.',
    values: { link, by: reason.by },
  })
}
