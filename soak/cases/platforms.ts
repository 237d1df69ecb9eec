import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eicar, newEncryptedDocx } from '../../acceptance/support/archives.ts'
import { readCodeBlocks } from '../../acceptance/support/code-blocks.ts'
import { startListeners, toStream } from '../../acceptance/support/listeners.ts'
import { toMail } from '../../acceptance/support/mail-client.ts'
import { withoutImages } from '../../acceptance/support/start-service.ts'
import type { Case } from '../case.ts'

const version = '1.0.6'

/** Platforms whose programs come from npm, and are not among the dependencies of this repository. */
export const soak: Case = {
  about: `The plugin haraka-plugin-clamd ${version} with the settings of docs/platforms.md`,
  async run() {
    const dir = mkdtempSync(join(tmpdir(), 'assay-haraka-'))
    const listeners = await startListeners(withoutImages)
    try {
      const scan = installPlugin(dir, listeners.ports.clamd)
      assert.equal(await scan(Buffer.from('nothing to see')), 'accepted')
      assert.equal(await scan(Buffer.alloc(20_000_000, 'x')), 'accepted')
      assert.equal(await scan(eicar), 'refused')
      assert.equal(await scan(newEncryptedDocx()), 'refused')
      const [account] = (await listeners.operate('accounts', 'list')) as { id: string }[]
      await listeners.operate('accounts', 'suspend', account?.id ?? '')
      assert.equal(await scan(Buffer.from('nothing to see here')), 'deferred')
      await listeners.stop()
      assert.equal(await scan(Buffer.from('nothing to see either')), 'deferred')
      return 'clean mail accepted, threats and encrypted mail refused, mail deferred while nothing is scanned'
    } finally {
      await listeners.stop()
      rmSync(dir, { recursive: true, force: true })
    }
  },
}

type Plugin = {
  config: unknown
  cfg?: unknown
  name: string
  load_excludes(): void
  load_clamd_ini(): void
  clamd_data_post(next: (code?: number) => void, connection: unknown): Promise<void>
}

/** Installs the plugin and returns a function that gives it a mail, as Haraka does after DATA. */
function installPlugin(dir: string, port: number) {
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefix', dir]
  execFileSync('npm', ['install', ...options, `haraka-plugin-clamd@${version}`], { stdio: 'pipe' })
  const recipe = readCodeBlocks('docs/platforms.md').find(({ text }) => text.startsWith('# config/clamd.ini\n'))
  mkdirSync(join(dir, 'config'))
  writeFileSync(join(dir, 'config/clamd.ini'), (recipe?.text ?? '').replace('3310', String(port)))
  const load = createRequire(join(dir, 'package.json'))
  // Haraka gives plugins these codes as globals.
  const codes = { DENY: 902, DENYSOFT: 903 }
  Object.assign(globalThis, codes)
  const log = Object.fromEntries(
    ['loginfo', 'logerror', 'logwarn', 'logdebug', 'logprotocol'].map((name) => [name, () => {}]),
  )
  const config = load('haraka-config').module_config(dir)
  const plugin: Plugin = Object.assign(Object.create(load('haraka-plugin-clamd')), log, { config, name: 'clamd' })
  plugin.load_excludes()
  plugin.load_clamd_ini()

  return async (content: Buffer): Promise<string> => {
    const mail = toMail(content)
    const transaction = {
      notes: {},
      data_bytes: mail.length,
      results: { add: () => {} },
      add_header: () => {},
      message_stream: { pipe: (socket: Socket) => socket.write(toStream(mail)) },
    }
    const code = await new Promise<number | undefined>((resolve, reject) => {
      plugin.clamd_data_post(resolve, { ...log, transaction, remote: {}, notes: {} }).catch(reject)
    })
    if (code === undefined) return 'accepted'
    return code === codes.DENY ? 'refused' : 'deferred'
  }
}
