import type { ScanKind, ScanMode } from './limits.ts'

/** What an operation does, with just what its handler and its documentation need to know. */
type Doing =
  | { does: 'ping' }
  | { does: 'account' }
  | { does: 'result'; kind: ScanKind }
  | { does: 'file' | 'url'; kind: ScanKind; mode: ScanMode }

export type Operation = Doing & {
  id: string
  method: 'GET' | 'POST'
  /** Path parameters in braces, as in the specification. */
  path: string
  summary: string
}

const scanning = (kind: ScanKind, idPrefix: string, root: string, what: string): Operation[] => [
  {
    id: `${idPrefix}.GetResult`,
    method: 'GET',
    path: `${root}/{id}`,
    summary: `Fetch the result of ${what} scan`,
    does: 'result',
    kind,
  },
  {
    id: `${idPrefix}.ScanFile`,
    method: 'POST',
    path: `${root}/scan/file`,
    summary: `Run ${what} scan of a file and wait`,
    does: 'file',
    kind,
    mode: 'sync',
  },
  {
    id: `${idPrefix}.ScanUrl`,
    method: 'POST',
    path: `${root}/scan/url`,
    summary: `Run ${what} scan of a URL and wait`,
    does: 'url',
    kind,
    mode: 'sync',
  },
  {
    id: `${idPrefix}.SubmitFile`,
    method: 'POST',
    path: `${root}/submit/file`,
    summary: `Submit a file for ${what} scan in the background`,
    does: 'file',
    kind,
    mode: 'async',
  },
  {
    id: `${idPrefix}.SubmitUrl`,
    method: 'POST',
    path: `${root}/submit/url`,
    summary: `Submit a URL for ${what} scan in the background`,
    does: 'url',
    kind,
    mode: 'async',
  },
]

/** The whole interface, one row an operation. Routes, OpenAPI and the acceptance tests are made from this table. */
export const operations: readonly Operation[] = [
  ...scanning('malware', 'Malware', '/v1/malware', 'a malware'),
  ...scanning('nsfw_image', 'Nsfw.Images', '/v1/nsfw/images', 'an NSFW image'),
  { id: 'General.Me', method: 'GET', path: '/v1/me', summary: 'Show the account behind the key', does: 'account' },
  {
    id: 'General.Ping',
    method: 'GET',
    path: '/v1/ping',
    summary: 'Check connectivity and authentication',
    does: 'ping',
  },
]
