import type { JobSource, NewJob } from '../domain/ports/job-store.ts'

/**
 * How a new job travels to the database, beside its scan. Its content goes another way, because bytes in JSON would be
 * twice as long: all contents of a batch lie one behind the other in a parameter of their own, and the job says where.
 */
export const jobRecord = `is_job boolean, queue text, sealed_from integer, sealed_bytes integer, storage_key text, url text,
    test_case text, hold_ms integer, callback_url text, callback_host text`

export const toJobColumns = ({ source, callbackUrl, queue, holdMs }: NewJob, sealedBefore: number) => ({
  is_job: true,
  queue,
  // The database counts from 1.
  sealed_from: sealedBefore + 1,
  sealed_bytes: source.at === 'row' ? source.sealed.length : null,
  storage_key: source.at === 'storage' ? source.key : null,
  url: source.at === 'url' ? source.url : null,
  test_case: source.at === 'test' ? source.testCase : null,
  hold_ms: holdMs ?? null,
  callback_url: callbackUrl,
  callback_host: callbackUrl === null ? null : new URL(callbackUrl).host,
})

export type SourceRow = { sealed: Buffer | null; storage_key: string | null; url: string | null }

export function toSource({ sealed, storage_key, url }: SourceRow): JobSource {
  if (sealed !== null) return { at: 'row', sealed }
  if (storage_key !== null) return { at: 'storage', key: storage_key }
  if (url !== null) return { at: 'url', url }
  throw new Error('A job has no content')
}
