import { readFileSync } from 'node:fs'
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

/** Files in the forms in which Git keeps and exports them. */
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
]
