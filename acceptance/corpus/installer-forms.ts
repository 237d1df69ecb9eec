import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { newRoot } from './disk-tools.ts'
import type { Form } from './form.ts'
import { uuencode } from './mail-writer.ts'
import { type Build, base64, formsOf, runAndRead, script, text, zipFile } from './samples.ts'
import { run } from './tools.ts'

const installerForm = formsOf({ family: 'installers', needs: [] })

const byMakeself =
  (...args: string[]): Build =>
  (payload, workdir) =>
    runAndRead(workdir, 'out.run', 'makeself', ...args, newRoot(workdir, payload), 'out.run', 'A program', 'true')

const byShar =
  (...args: string[]): Build =>
  (_payload, workdir) =>
    run('shar', ['-q', '-s', 'ann@example.org', ...args, 'payload.com'], { cwd: workdir })

/** Writes an installer with makensis. */
const byMakensis =
  (...lines: string[]): Build =>
  (_payload, workdir) => {
    const script = [
      ...lines,
      'Name a',
      'OutFile out.exe',
      'Section',
      'SetOutPath $INSTDIR',
      'File payload.com',
      'SectionEnd',
    ]
    writeFileSync(join(workdir, 'a.nsi'), script.join('\n'))
    return runAndRead(workdir, 'out.exe', 'makensis', '-V1', 'a.nsi')
  }

/** A Windows program, which is an installer that installs nothing. */
function newWindowsProgram(workdir: string): Buffer {
  writeFileSync(join(workdir, 'empty.nsi'), 'Name a\nOutFile empty.exe\nSetCompress off\nSection\nSectionEnd\n')
  return runAndRead(workdir, 'empty.exe', 'makensis', '-V1', 'empty.nsi')
}

const linuxProgram = () => readFileSync('/bin/true')

const packers: Record<string, Build> = {
  zip: (payload, workdir) => zipFile(workdir, 'inner.com', payload),
  '7z': (_payload, workdir) => runAndRead(workdir, 'a.7z', '7z', 'a', '-bd', 'a.7z', 'payload.com'),
  'tar.gz': (_payload, workdir) => runAndRead(workdir, 'a.tgz', 'tar', '-czf', 'a.tgz', 'payload.com'),
  'tar.xz': (_payload, workdir) => runAndRead(workdir, 'a.txz', 'tar', '-cJf', 'a.txz', 'payload.com'),
}

/** Makes a sample for each archive that stands behind a program. */
const eachBehind = (extension: string, newProgram: (workdir: string) => Buffer): Record<string, Build> =>
  Object.fromEntries(
    Object.entries(packers).map(([name, pack]) => [
      `${name}.${extension}`,
      (payload: Buffer, workdir: string) => Buffer.concat([newProgram(workdir), pack(payload, workdir)]),
    ]),
  )

const bySevenZipSfx = (_payload: Buffer, workdir: string) => {
  run('7z', ['a', '-bd', '-sfx7zCon.sfx', 'out.exe', 'payload.com'], { cwd: workdir })
  return readFileSync(join(workdir, 'out.exe'))
}

/** A script with an archive behind its last line, as many vendors write it. */
const withArchive =
  (command: string, pack: Build): Build =>
  (payload, workdir) => {
    const lines = [
      '#!/bin/sh',
      'line=$(awk \'/^__ARCHIVE__$/ { print NR + 1; exit }\' "$0")',
      `tail -n +$line "$0" | ${command}`,
      'exit 0',
      '__ARCHIVE__',
      '',
    ]
    return Buffer.concat([Buffer.from(lines.join('\n')), pack(payload, workdir)])
  }

const plain = (payload: Buffer) => payload.toString()
const runs = { extractors: ['run by sh'] }

/** Programs and scripts that carry a file. */
export const installerForms: Form[] = [
  installerForm(
    'makeself',
    'ambiguous',
    {
      ...Object.fromEntries(
        ['gzip', 'bzip2', 'xz', 'zstd', 'lzo', 'lz4', 'compress', 'base64', 'nocomp'].map((name) => [
          `${name}.run`,
          byMakeself(`--${name}`),
        ]),
      ),
      'pax.run': byMakeself('--tar-format', 'pax'),
      'sha256.run': byMakeself('--sha256', '--nomd5'),
      'in.zip': (payload, workdir) => zipFile(workdir, 'a.run', byMakeself('--xz')(payload, workdir)),
    },
    { needs: ['makeself', 'zip', 'lzop', 'lz4', 'zstd', 'compress'], extractors: ['run by sh', 'unzip and sh'] },
  ),
  installerForm(
    'makeself with a password',
    'encrypted',
    { 'openssl.run': byMakeself('--ssl-encrypt', '--ssl-passwd', 'secret') },
    { needs: ['makeself', 'openssl'] },
  ),
  installerForm(
    'shell archive',
    'ambiguous',
    {
      'text.shar': byShar(),
      'uuencoded.shar': byShar('-B'),
      'gzip.shar': byShar('-C', 'gzip'),
      'bzip2.shar': byShar('-C', 'bzip2'),
      'xz.shar': byShar('-C', 'xz'),
      'vanilla.shar': byShar('-V'),
      'prefixed.shar': byShar('-F'),
      'cut-mark.shar': byShar('-c'),
    },
    { needs: ['shar', 'uuencode'], extractors: ['run by sh', 'uudecode'] },
  ),
  installerForm(
    'NSIS',
    'ambiguous',
    {
      'zlib.exe': byMakensis('SetCompressor zlib'),
      'bzip2.exe': byMakensis('SetCompressor bzip2'),
      'lzma.exe': byMakensis('SetCompressor lzma'),
      'solid-zlib.exe': byMakensis('SetCompressor /SOLID zlib'),
      'solid-bzip2.exe': byMakensis('SetCompressor /SOLID bzip2'),
      'solid-lzma.exe': byMakensis('SetCompressor /SOLID lzma'),
      'uncompressed.exe': byMakensis('SetCompress off'),
      'ansi.exe': byMakensis('Unicode false', 'SetCompressor zlib'),
    },
    { needs: ['makensis'] },
  ),
  installerForm('7-Zip self-extractor', 'ambiguous', { 'sfx.exe': bySevenZipSfx }, { needs: ['7z'] }),
  installerForm('archive behind a Linux program', 'ambiguous', eachBehind('bin', linuxProgram), {
    needs: ['zip', '7z', 'tar', 'xz'],
    extractors: ['archive behind a program'],
  }),
  installerForm('archive behind a Windows program', 'ambiguous', eachBehind('exe', newWindowsProgram), {
    needs: ['zip', '7z', 'tar', 'xz', 'makensis'],
    extractors: ['archive behind a program'],
  }),
  installerForm(
    'script with an archive behind it',
    'ambiguous',
    {
      'tar.gz.sh': withArchive('tar -xz', packers['tar.gz'] as Build),
      'tar.xz.sh': withArchive('tar -xJ', packers['tar.xz'] as Build),
      'gzip.sh': withArchive('gzip -dc > payload', (payload) => gzipSync(payload)),
      'base64.sh': withArchive('base64 -d > payload', (payload) => Buffer.from(base64(payload))),
      'base64-tar.gz.sh': withArchive('base64 -d | tar -xz', (payload, workdir) =>
        Buffer.from(base64((packers['tar.gz'] as Build)(payload, workdir))),
      ),
      'plain.sh': withArchive('cat > payload', (payload) => payload),
    },
    { needs: ['tar', 'xz', '7z', 'zip'], ...runs },
  ),
  installerForm(
    'shell script with a document in it',
    'ambiguous',
    {
      'base64.sh': script(text("#!/bin/sh\nbase64 -d > payload <<'END'"), base64, text('END')),
      'openssl.sh': script(text("#!/bin/sh\nopenssl base64 -d > payload <<'END'"), base64, text('END')),
      'uuencoded.sh': script(
        text("#!/bin/sh\nuudecode -o payload <<'END'"),
        (payload) => uuencode(payload),
        text('END'),
      ),
      'plain.sh': script(text("#!/bin/sh\ncat > payload <<'END'"), plain, text('END')),
      'loop.sh': script(text('#!/bin/sh\nwhile read -r l; do echo "$l"; done > payload <<\'END\''), plain, text('END')),
      'pattern.sh': script(
        text("#!/bin/sh\nsed 's,^[X],,' > payload <<'END'"),
        (payload) => `X${payload}`,
        text('END'),
      ),
      'column.sh': script(text("#!/bin/sh\ncut -c3- > payload <<'END'"), (payload) => `XY${payload}`, text('END')),
      'continued.sh': script(text("#!/bin/sh\ncat \\\n > payload \\\n <<E'N'D"), plain, text('END')),
      'second.sh': script(text("#!/bin/sh\ncat <<'A'; cat <<'END' > payload\na\nA"), plain, text('END')),
      'escaped.sh': script(
        text('#!/bin/sh\ncat > payload <<-END'),
        (payload) => `\t\t${payload.toString().replace(/[\\$]/g, '\\$&')}`,
        text('\tEND'),
      ),
      'parts.sh': script(
        text("#!/bin/sh\nbase64 -d > payload <<'END'"),
        (payload) => `${base64(payload.subarray(0, 34))}\n${base64(payload.subarray(34))}`,
        text('END'),
      ),
      'echo.sh': script((payload) => `#!/bin/sh\necho ${payload.toString('base64')} | base64 -d > payload`),
    },
    { needs: ['uuencode', 'openssl'], extractors: ['run by sh', 'run by bash', 'uudecode'] },
  ),
]
