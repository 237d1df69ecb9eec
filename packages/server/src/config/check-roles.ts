import type { Roles } from './readers.ts'

type Shared = {
  roles?: Roles
  blobs?: { at: 'disk' | 's3' }
  databaseUrl?: string | undefined
  masterKey?: Buffer | undefined
}

/** A node that does only one half of the work must share with those that do the other: sentences about what it cannot. */
export function checkRoles({ roles, blobs, databaseUrl, masterKey }: Shared): string[] {
  if (roles === undefined || (roles.api && roles.worker)) return []
  const needs = `ASSAY_ROLES=${roles.api ? 'api' : 'worker'} needs`
  return [
    ...(databaseUrl === undefined
      ? [`${needs} a database that all nodes share: set ASSAY_DATABASE_URL to a PostgreSQL of yours.`]
      : []),
    ...(blobs?.at === 's3'
      ? []
      : [`${needs} a place for content that all nodes share: set ASSAY_BLOBS to s3://bucket?endpoint=...&region=....`]),
    ...(masterKey === undefined
      ? [`${needs} the key that all nodes share: set ASSAY_MASTER_KEY to the same 64 hex digits everywhere.`]
      : []),
  ]
}
