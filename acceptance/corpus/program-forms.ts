import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Form } from './form.ts'
import { writeBundle } from './git-forms.ts'
import { formsOf, runAndRead } from './samples.ts'
import { run } from './tools.ts'

const newForm = formsOf({ family: 'formats of single programs', needs: [] })

/** Lets PHP write an archive with the given compression. */
function writePhar(workdir: string, compress: string): Buffer {
  writeFileSync(
    join(workdir, 'make.php'),
    `<?php $phar = new Phar('a.phar'); $phar['payload.com'] = file_get_contents('payload.com'); ${compress}`,
  )
  return runAndRead(workdir, 'a.phar', 'php', '-d', 'phar.readonly=0', 'make.php')
}

/** Formats that one program writes and reads. */
export const programForms: Form[] = [
  newForm(
    'archives of PHP',
    'opened',
    {
      'stored.phar': (_, workdir) => writePhar(workdir, ''),
      'deflated.phar': (_, workdir) => writePhar(workdir, '$phar->compressFiles(Phar::GZ);'),
      'picture.gif': (_, workdir) => writePhar(workdir, "$phar->setStub('GIF89a <?php __HALT_COMPILER(); ?>');"),
    },
    { needs: ['php'], extractors: ['php'] },
  ),
  newForm(
    'zlib',
    'opened',
    { 'pigz.zz': (_, workdir) => runAndRead(workdir, 'payload.com.zz', 'pigz', '-zk', 'payload.com') },
    { needs: ['pigz'], extractors: ['pigz'] },
  ),
  newForm(
    'compressors that Assay does not decode',
    'unopened',
    {
      'bzip3.bz3': (_, workdir) => runAndRead(workdir, 'a.bz3', 'bzip3', '-e', 'payload.com', 'a.bz3'),
      'rzip.rz': (_, workdir) => runAndRead(workdir, 'payload.com.rz', 'rzip', '-k', 'payload.com'),
    },
    { needs: ['bzip3', 'rzip'] },
  ),
  newForm(
    'archivers that Assay does not read',
    'unopened',
    {
      'arc.arc': (_, workdir) => runAndRead(workdir, 'a.arc', 'arc', 'a', 'a.arc', 'payload.com'),
      'dar.dar': (_, workdir) => runAndRead(workdir, 'a.1.dar', 'dar', '-Q', '-q', '-c', 'a', '-g', 'payload.com'),
      'sqlite.sqlar': (_, workdir) => runAndRead(workdir, 'a.sqlar', 'sqlite3', 'a.sqlar', '-Ac', 'payload.com'),
      'git.bundle': (_, workdir) => writeBundle(workdir),
      'parity.par2': (_, workdir) => {
        run('par2', ['create', '-q', '-r100', '-n1', 'a.par2', 'payload.com'], { cwd: workdir })
        return runAndRead(workdir, 'all.par2', 'sh', '-c', 'cat *.par2 > all.tmp; mv all.tmp all.par2')
      },
    },
    { needs: ['arc', 'dar', 'sqlite3', 'git', 'par2'] },
  ),
]
