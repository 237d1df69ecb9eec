import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { TestContext } from 'node:test'
import { type Browser, chromium } from 'playwright-core'

const executablePath = '/usr/bin/chromium'

/** Debian's, installed where that is allowed. Undefined: there is none, and the test is skipped with this reason. */
export async function openChromium(t: TestContext): Promise<Browser | undefined> {
  if (!existsSync(executablePath) && process.getuid?.() === 0) install()
  if (!existsSync(executablePath)) {
    t.skip('chromium is not installed, and only root may install it')
    return undefined
  }
  // Its sandbox does not work for root.
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  t.after(() => browser.close())
  return browser
}

function install() {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const options = { stdio: 'ignore', timeout: 90_000, env } as const
  spawnSync('/usr/bin/apt-get', ['install', '-y', '-q', '--no-install-recommends', 'chromium'], options)
}
