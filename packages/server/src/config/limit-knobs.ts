import { knob } from './knob.ts'
import { wholeNumber } from './readers.ts'

/** How much of the machine clients and their content may take. */
export const limitKnobs = {
  maxConnections: knob({
    env: 'ASSAY_MAX_CONNECTIONS',
    read: wholeNumber(1, 1_000_000),
    fallback: '10000',
    about: 'Connections of clients at once; more get 503. Fewer where the limit of open files asks for it.',
  }),
  diskReserve: knob({
    env: 'ASSAY_DISK_RESERVE_MB',
    read: wholeNumber(0, 1_000_000_000),
    fallback: '256',
    about: 'Space that stays free on the disk of the data directory: content that would need it is refused with 503.',
  }),
  jobContent: knob({
    env: 'ASSAY_JOB_CONTENT_MB',
    read: wholeNumber(1, 1_000_000_000),
    about: 'Space for content of background jobs that wait; more is refused with 503. Unset: all but the reserve.',
  }),
}
