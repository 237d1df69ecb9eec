import { magic, openedByNone, openedByReader, type Row } from './format-row.ts'

/** The header of an object of Git: its type and its length. */
const objectHeader = /^(?:blob|commit|tree|tag) \d{1,20}\0/
const longestHeader = 32

/** The length of the header with which an object of Git begins; 0 for other content. */
export const findGitHeader = (head: Buffer): number =>
  objectHeader.exec(head.toString('latin1', 0, longestHeader))?.[0].length ?? 0

/** The commands with which `git fast-export` begins a stream, and the starts of the lines that may follow them. */
const streamStarts = [
  /^blob\n(?:mark :|original-oid |data )/,
  /^(?:commit|reset|tag) \S+\n(?:mark :|original-oid |author |committer |from |commit |reset |\n)/,
  /^feature (?:done|[\w-]+=\S+)\n/,
]
const longestCommand = 1024

/** Whether content begins as a stream for `git fast-import`. */
export function isGitStream(head: Buffer): boolean {
  const text = head.toString('latin1', 0, longestCommand)
  return streamStarts.some((start) => start.test(text))
}

/** The formats of Git: packs and bundles, objects that zlib held, and streams with the history of a repository. */
export const gitFormats: Row[] = [
  openedByNone('git', magic('# v2 git bundle\n'), magic('# v3 git bundle\n'), magic('PACK\x00\x00\x00\x02')),
  {
    ...openedByReader('git-object', undefined, magic('blob '), magic('commit '), magic('tree '), magic('tag ')),
    confirm: (head) => findGitHeader(head) > 0,
  },
  {
    ...openedByReader(
      'git-stream',
      undefined,
      ...['blob\n', 'commit ', 'reset ', 'tag ', 'feature '].map((text) => magic(text)),
    ),
    confirm: isGitStream,
  },
]
