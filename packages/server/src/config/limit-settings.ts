import { wholeNumber } from './readers.ts'
import { definition } from './setting.ts'

/** How much of the machine clients and their content may take. */
export const limitSettings = {
  maxConnections: definition({
    env: 'ASSAY_MAX_CONNECTIONS',
    read: wholeNumber(1, 1_000_000),
    fallback: '10000',
    about: 'Maximum number of client connections. More get 503. Reduced if the limit of open files requires it.',
  }),
  diskReserve: definition({
    env: 'ASSAY_DISK_RESERVE_MB',
    read: wholeNumber(0, 1_000_000_000),
    fallback: '256',
    about: 'Free space to keep on the disk of the data directory, in MB. Content that would use it gets 503.',
  }),
  jobContent: definition({
    env: 'ASSAY_JOB_CONTENT_MB',
    read: wholeNumber(1, 1_000_000_000),
    about: 'Maximum content of waiting background jobs, in MB. More gets 503. Unset: only the reserve limits it.',
  }),
  drainDelaySeconds: definition({
    env: 'ASSAY_DRAIN_DELAY_SECONDS',
    read: wholeNumber(0, 300),
    fallback: '0',
    about: 'Seconds to accept requests after /readyz reports a stop. Exceed the check interval of your load balancer.',
  }),
}
