import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Form } from './form.ts'
import { type Build, formsOf, runAndRead, zipFile } from './samples.ts'
import { run } from './tools.ts'

const gitForm = formsOf({ family: 'formats of single programs', needs: ['git'] })

const git = (workdir: string, ...args: string[]) =>
  run('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.org', ...args], { cwd: workdir })

/** Makes a repository with one commit, of the payload. */
function commit(workdir: string, ...options: string[]) {
  git(workdir, 'init', '-q', '.')
  git(workdir, ...options, 'add', 'payload.com')
  git(workdir, 'commit', '-qm', 'Add a file')
}

/** Lets Git write a file with the history of one commit. */
export function writeBundle(workdir: string): Buffer {
  commit(workdir)
  return runAndRead(workdir, 'a.bundle', 'git', 'bundle', 'create', '-q', 'a.bundle', 'HEAD')
}

const asObject =
  (level: number): Build =>
  (_payload, workdir) => {
    commit(workdir, '-c', `core.looseCompression=${level}`)
    const hash = git(workdir, 'hash-object', 'payload.com').toString().trim()
    return readFileSync(join(workdir, '.git/objects', hash.slice(0, 2), hash.slice(2)))
  }

const asStream =
  (...options: string[]): Build =>
  (_payload, workdir) => {
    commit(workdir)
    return git(workdir, 'fast-export', ...options, 'HEAD')
  }

/** Lets Git print the commit as a patch, with binary data if the payload stands in an archive. */
const asPatch =
  (isBinary: boolean, ...args: string[]): Build =>
  (payload, workdir) => {
    const file = isBinary ? zipFile(workdir, 'inner.com', payload) : payload
    writeFileSync(join(workdir, 'payload.com'), file)
    commit(workdir)
    return git(workdir, ...args)
  }

/** Lets diff compare an empty file with the payload. It ends with 1 where files differ. */
const byDiff =
  (...options: string[]): Build =>
  (_payload, workdir) => {
    writeFileSync(join(workdir, 'empty'), '')
    return run('sh', ['-c', 'diff "$@" empty payload.com; [ $? = 1 ]', 'diff', ...options], { cwd: workdir })
  }

const emptyTree = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'

/** Files in the forms in which Git keeps and exports them, and in patches. */
export const gitForms: Form[] = [
  gitForm(
    'objects of Git',
    'opened',
    {
      'object.bin': asObject(-1),
      'fast.bin': asObject(1),
      'stored.bin': asObject(0),
    },
    { needs: ['git', 'python3'], extractors: ['git objects'] },
  ),
  gitForm(
    'objects of Git in an archive',
    'ambiguous',
    {
      'repository.tar': (_payload, workdir) => {
        commit(workdir)
        return runAndRead(workdir, 'a.tar', 'tar', '-cf', 'a.tar', '.git')
      },
      'object.zip': (payload, workdir) => zipFile(workdir, 'object', asObject(-1)(payload, workdir)),
    },
    { needs: ['git', 'tar', 'zip'] },
  ),
  gitForm(
    'streams of Git',
    'opened',
    {
      'export.txt': asStream(),
      'done.txt': asStream('--use-done-feature'),
      'ids.txt': asStream('--show-original-ids'),
    },
    { extractors: ['git fast-import'] },
  ),
  gitForm(
    'patches of Git',
    'opened',
    {
      'diff.patch': asPatch(false, 'diff', emptyTree, 'HEAD'),
      'show.patch': asPatch(false, 'show', '--stat', '-p'),
      'mail.patch': asPatch(false, 'format-patch', '--root', '--stdout', 'HEAD'),
      'context.patch': asPatch(false, 'diff', '-U0', '--full-index', emptyTree, 'HEAD'),
      'binary.patch': asPatch(true, 'diff', '--binary', emptyTree, 'HEAD'),
      'binary-mail.patch': asPatch(true, 'format-patch', '--root', '--stdout', 'HEAD'),
    },
    { needs: ['git', 'zip'], extractors: ['git apply'] },
  ),
  gitForm(
    'patches of other programs',
    'opened',
    {
      'unified.patch': byDiff('-u'),
      'context.patch': byDiff('-c'),
      'normal.patch': byDiff('--normal'),
      'function.patch': byDiff('-p', '-U1'),
    },
    { needs: ['diff'], extractors: ['patch'] },
  ),
]
