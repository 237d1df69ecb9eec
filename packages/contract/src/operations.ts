import type { ScanKind, ScanMode } from './limits.ts'

/** The action of an operation, with the parameters that its handler and its documentation need. */
type Action =
  | { does: 'ping' }
  | { does: 'account' }
  | { does: 'result'; kind: ScanKind }
  | { does: 'file' | 'url'; kind: ScanKind; mode: ScanMode }

export type Operation = Action & {
  id: string
  method: 'GET' | 'POST'
  /** Path with parameters in braces, as in OpenAPI. */
  path: string
  summary: string
}

const newScanOperations = (kind: ScanKind, idPrefix: string, root: string, scan: string): Operation[] => [
  {
    id: `${idPrefix}.GetResult`,
    method: 'GET',
    path: `${root}/{id}`,
    summary: `Fetch the result of ${scan}`,
    does: 'result',
    kind,
  },
  {
    id: `${idPrefix}.ScanFile`,
    method: 'POST',
    path: `${root}/scan/file`,
    summary: `Run ${scan} of a file and wait for the result`,
    does: 'file',
    kind,
    mode: 'sync',
  },
  {
    id: `${idPrefix}.ScanUrl`,
    method: 'POST',
    path: `${root}/scan/url`,
    summary: `Run ${scan} of a URL and wait for the result`,
    does: 'url',
    kind,
    mode: 'sync',
  },
  {
    id: `${idPrefix}.SubmitFile`,
    method: 'POST',
    path: `${root}/submit/file`,
    summary: `Submit a file for ${scan} in the background`,
    does: 'file',
    kind,
    mode: 'async',
  },
  {
    id: `${idPrefix}.SubmitUrl`,
    method: 'POST',
    path: `${root}/submit/url`,
    summary: `Submit a URL for ${scan} in the background`,
    does: 'url',
    kind,
    mode: 'async',
  },
]

/** Where the public keys that verify receipts are published, as a JSON Web Key Set. */
export const receiptKeysPath = '/.well-known/assay-receipts.json'

/** The whole public API. Routes, OpenAPI and the acceptance tests are built from this table. */
export const operations: readonly Operation[] = [
  ...newScanOperations('malware', 'Malware', '/v1/malware', 'a malware scan'),
  ...newScanOperations('nsfw_image', 'Nsfw.Images', '/v1/nsfw/images', 'an NSFW image scan'),
  { id: 'General.Me', method: 'GET', path: '/v1/me', summary: 'Show the account of the API key', does: 'account' },
  {
    id: 'General.Ping',
    method: 'GET',
    path: '/v1/ping',
    summary: 'Check connectivity and authentication',
    does: 'ping',
  },
]
