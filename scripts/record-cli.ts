import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { eicar } from '../acceptance/support/archives.ts'
import { startService } from '../acceptance/support/start-service.ts'

/**
 * Draws docs/images/assay-scan.svg: a session in a real terminal (`script` of util-linux) against a service of its own.
 * Run it again when the output changes: node scripts/record-cli.ts
 */
const root = fileURLToPath(new URL('..', import.meta.url))
const commands = ['assay-scan inbox', 'echo $?', 'assay-scan --nsfw --no-summary card.png', 'assay-scan me']
const [columns, fontSize, lineHeight, padding] = [84, 14, 19, 16]
const colours: Record<string, string> = { '31': '#ff7b72', '32': '#7ee787', '33': '#e3b341' }

const service = await startService({})
const dir = mkdtempSync(join(tmpdir(), 'assay-record-'))
try {
  makeFiles()
  const steps = commands.map((each) => `printf '\\033[32m$\\033[0m %s\\n' '${each}'; (exit $last); ${each}; last=$?`)
  const env = { ...process.env, PATH: `${dir}/bin:${process.env.PATH}`, HOME: dir, TERM: 'xterm', NO_COLOR: '' }
  const settings = { ...env, ASSAY_URL: service.url, ASSAY_API_KEY: service.apiKey }
  const shown = execFileSync('script', ['-qec', `last=0; ${steps.join('; ')}; exit 0`, '/dev/null'], {
    cwd: dir,
    env: settings,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  writeFileSync(join(root, 'docs/images/assay-scan.svg'), toSvg(toLines(shown)))
} finally {
  rmSync(dir, { recursive: true, force: true })
  await service.stop()
}

function makeFiles() {
  mkdirSync(join(dir, 'bin'))
  writeFileSync(
    join(dir, 'bin/assay-scan'),
    `#!/bin/sh\nexec '${process.execPath}' '${root}packages/cli/src/main.ts' "$@"\n`,
  )
  chmodSync(join(dir, 'bin/assay-scan'), 0o755)
  mkdirSync(join(dir, 'inbox/invoices'), { recursive: true })
  writeFileSync(join(dir, 'inbox/letter.txt'), 'Dear Sir or Madam,\n')
  writeFileSync(join(dir, 'inbox/notes.md'), '# Notes\n')
  writeFileSync(join(dir, 'inbox/invoices/2026-11.csv'), 'number,amount\n1,100\n')
  writeFileSync(join(dir, 'inbox/invoices/eicar.com'), eicar)
  copyFileSync(join(root, 'docs/test-images/pornography.png'), join(dir, 'card.png'))
}

/** Returns the final state of the screen, in which a redrawn line shows its last version. */
function toLines(shown: string): string[] {
  return shown
    .split('\n')
    .map((line) => line.replace(/\r$/, '').replace(/^.*\r\x1b\[K/s, ''))
    .map((line) => line.replace(service.url, 'https://scan.example.com'))
}

function toSvg(lines: string[]): string {
  const all = lines.at(-1) === '' ? lines.slice(0, -1) : lines
  const [width, height] = [columns * 8.43 + 2 * padding, all.length * lineHeight + 2 * padding]
  const rows = all.map(
    (line, i) => `<text x="${padding}" y="${padding + lineHeight * (i + 0.75)}">${toSpans(line)}</text>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${Math.ceil(width)}" height="${height}" role="img" aria-label="A session with assay-scan">
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="${fontSize}" fill="#e6edf3" xml:space="preserve">
${rows.join('\n')}
</g>
</svg>
`
}

function toSpans(line: string): string {
  const toText = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return line
    .split(/(\x1b\[\d+m)/)
    .map((piece) => {
      const code = /^\x1b\[(\d+)m$/.exec(piece)?.[1]
      if (code === undefined) return toText(piece)
      return code in colours ? `<tspan fill="${colours[code]}">` : code === '0' ? '</tspan>' : ''
    })
    .join('')
}
