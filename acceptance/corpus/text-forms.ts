import type { Form } from './form.ts'
import { breakLines } from './mail-writer.ts'
import { type Build, base64, formsOf, script, text, zipFile } from './samples.ts'
import { run } from './tools.ts'

const textForm = formsOf({ family: 'encoded text', needs: [] })

const toHexLines = (payload: Buffer) => breakLines(payload.toString('hex'), 60)
const toDump = (payload: Buffer) => run('xxd', [], { input: payload }).toString().trimEnd()

/** Writes each byte as an escape, in octal or hexadecimal digits. */
const escapeBytes = (payload: Buffer, radix: 8 | 16, mark: string) =>
  [...payload].map((byte) => mark + byte.toString(radix).padStart(radix === 8 ? 3 : 2, '0')).join('')

const encodeBy =
  (...options: string[]): Build =>
  (payload) =>
    run('basenc', options, { input: payload })

const encodeByPython =
  (expression: string): Build =>
  (payload) =>
    run(
      'python3',
      ['-c', `import base64, sys; data = sys.stdin.buffer.read(); sys.stdout.buffer.write(base64.${expression})`],
      { input: payload },
    )

const byXxd = (payload: Buffer) => run('xxd', ['-i'], { input: payload }).toString()

const dumpBy =
  (program: string, ...options: string[]): Build =>
  (payload) =>
    run(program, options, { input: payload })

const withPythonZip: Build = (payload, workdir) => {
  const program = `import base64, io, zipfile\narchive = base64.b64decode('${zipFile(workdir, 'inner.com', payload).toString('base64')}')\nzipfile.ZipFile(io.BytesIO(archive)).extractall()\n`
  return Buffer.from(program)
}

const page = (payload: Buffer, body: string) =>
  `<!DOCTYPE html>\n<title>A page</title>\n${body.replaceAll('BASE64', payload.toString('base64'))}\n`

/** Texts that hold a file as letters or digits, which a program decodes. */
export const textForms: Form[] = [
  textForm(
    'program text with hexadecimal digits',
    'ambiguous',
    {
      'digits.sh': script(text("#!/bin/sh\nxxd -r -p > payload <<'END'"), toHexLines, text('END')),
      'dump.sh': script(text("#!/bin/sh\nxxd -r > payload <<'END'"), toDump, text('END')),
      'echo.sh': script((payload) => `#!/bin/sh\necho ${payload.toString('hex')} | xxd -r -p > payload`),
      'octal.sh': script((payload) => `#!/bin/sh\nprintf '${escapeBytes(payload, 8, '\\')}' > payload`),
      'digits.py': script((payload) => `open('payload', 'wb').write(bytes.fromhex('${payload.toString('hex')}'))`),
      'escapes.py': script((payload) => `open('payload', 'wb').write(b'${escapeBytes(payload, 16, '\\x')}')`),
      'escapes.js': script(
        (payload) => `require('fs').writeFileSync('payload', '${escapeBytes(payload, 16, '\\x')}', 'latin1')`,
      ),
    },
    { needs: ['xxd'], extractors: ['run by sh', 'run by bash', 'run by python', 'run by node'] },
  ),
  textForm(
    'program text with base64',
    'ambiguous',
    {
      'python.py': script(
        (payload) => `import base64\nopen('payload', 'wb').write(base64.b64decode('${payload.toString('base64')}'))`,
      ),
      'python-lines.py': script(
        text("import base64\nopen('payload', 'wb').write(base64.b64decode('''"),
        base64,
        text("'''))"),
      ),
      'python-zip.py': withPythonZip,
      'node.js': script(
        (payload) => `require('fs').writeFileSync('payload', Buffer.from('${payload.toString('base64')}', 'base64'))`,
      ),
      'powershell.ps1': script(
        (payload) =>
          `$bytes = [Convert]::FromBase64String('${payload.toString('base64')}')\n[IO.File]::WriteAllBytes("$pwd\\payload.com", $bytes)`,
      ),
    },
    { needs: ['zip'], extractors: ['run by python', 'run by node'] },
  ),
  textForm(
    'base32',
    'opened',
    {
      'lines.txt': encodeBy('--base32'),
      'one-line.txt': encodeBy('--base32', '-w0'),
      'short-lines.txt': encodeBy('--base32', '-w20'),
      'extended.txt': encodeBy('--base32hex'),
    },
    { needs: ['basenc'], extractors: ['base32'] },
  ),
  textForm(
    'program text with base32',
    'ambiguous',
    {
      'script.sh': (payload) =>
        Buffer.from(`#!/bin/sh\nbase32 -d > payload <<'END'\n${encodeBy('--base32')(payload, '.')}END\n`),
      'python.py': (payload) =>
        Buffer.from(
          `import base64\nopen('payload', 'wb').write(base64.b32decode('${encodeBy('--base32', '-w0')(payload, '.')}'))\n`,
        ),
    },
    { needs: ['basenc'], extractors: ['run by sh', 'run by python'] },
  ),
  textForm(
    'Ascii85',
    'opened',
    {
      'one-line.txt': encodeByPython('a85encode(data, adobe=True)'),
      'lines.txt': encodeByPython('a85encode(data, adobe=True, wrapcol=40)'),
      'spaces.txt': encodeByPython('a85encode(data, adobe=True, foldspaces=True)'),
      'without-start.txt': encodeByPython('a85encode(data, adobe=True)[2:]'),
    },
    { needs: ['python3'], extractors: ['ascii85'] },
  ),
  textForm(
    'lists of numbers',
    'ambiguous',
    {
      'numbers.py': script((payload) => `open('payload', 'wb').write(bytes([${[...payload].join(', ')}]))`),
      'buffer.js': script(
        (payload) => `require('fs').writeFileSync('payload', Buffer.from(${JSON.stringify(payload)}.data))`,
      ),
      'hexadecimal.js': script(
        (payload) =>
          `require('fs').writeFileSync('payload', Uint8Array.of(${[...payload].map((byte) => `0x${byte.toString(16)}`)}))`,
      ),
      'xxd.py': script(text("open('payload', 'wb').write(bytes(["), byXxd, text(']))')),
    },
    { needs: ['xxd'], extractors: ['run by python', 'run by node'] },
  ),
  textForm(
    'dumps of hexdump and od',
    'ambiguous',
    {
      'canonical.txt': dumpBy('hexdump', '-C'),
      'octal-places.txt': dumpBy('od', '-t', 'x1'),
      'hexadecimal-places.txt': dumpBy('od', '-A', 'x', '-t', 'x1z'),
      'without-places.txt': dumpBy('od', '-An', '-t', 'x1'),
    },
    { needs: ['hexdump', 'od'] },
  ),
  textForm(
    'web page with a file in it',
    'ambiguous',
    {
      'link.html': script((payload) =>
        page(payload, '<a download="payload.com" href="data:application/octet-stream;base64,BASE64">Report</a>'),
      ),
      'picture.html': script((payload) => page(payload, '<img src="data:image/png;base64,BASE64">')),
      'object.html': script((payload) =>
        page(payload, '<object data="data:application/x-msdownload;base64,BASE64"></object>'),
      ),
      'blob.html': script((payload) =>
        page(
          payload,
          '<script>const bytes = Uint8Array.from(atob("BASE64"), (c) => c.charCodeAt(0))\nlocation = URL.createObjectURL(new Blob([bytes]))</script>',
        ),
      ),
      'picture.svg': script(
        (payload) =>
          `<svg xmlns="http://www.w3.org/2000/svg"><image href="data:image/png;base64,${payload.toString('base64')}"/></svg>`,
      ),
    },
    { extractors: ['python content'] },
  ),
]
