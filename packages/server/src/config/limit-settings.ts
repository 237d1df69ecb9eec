import { wholeNumber } from './readers.ts'
import { definition } from './setting.ts'

/** How much of the machine clients and their content may take. */
export const limitSettings = {
  maxConnections: definition({
    env: 'ASSAY_MAX_CONNECTIONS',
    read: wholeNumber(1, 1_000_000),
    fallback: '10000',
    about: 'Connections of clients at once; more get 503. Fewer where the limit of open files asks for it.',
  }),
  diskReserve: definition({
    env: 'ASSAY_DISK_RESERVE_MB',
    read: wholeNumber(0, 1_000_000_000),
    fallback: '256',
    about: 'Space that stays free on the disk of the data directory: content that would need it is refused with 503.',
  }),
  jobContent: definition({
    env: 'ASSAY_JOB_CONTENT_MB',
    read: wholeNumber(1, 1_000_000_000),
    about: 'Space for content of background jobs that wait; more is refused with 503. Unset: all but the reserve.',
  }),
  drainDelaySeconds: definition({
    env: 'ASSAY_DRAIN_DELAY_SECONDS',
    read: wholeNumber(0, 300),
    fallback: '0',
    about:
      'How long requests are still taken after /readyz turned red. Behind a balancer: longer than it takes to notice.',
  }),
}
