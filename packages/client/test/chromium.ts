import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { TestContext } from 'node:test'
import { type Browser, chromium } from 'playwright-core'

const executablePath = '/usr/bin/chromium'

/** Opens Debian's Chromium, installing it if the tests run as root. Otherwise skips the test and returns undefined. */
export async function openChromium(t: TestContext): Promise<Browser | undefined> {
  if (!existsSync(executablePath) && process.getuid?.() === 0) install()
  if (!existsSync(executablePath)) {
    t.skip('chromium is not installed, and only root can install it')
    return undefined
  }
  // The sandbox of Chromium does not work for root.
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  t.after(() => browser.close())
  return browser
}

function install() {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const options = { stdio: 'ignore', timeout: 90_000, env } as const
  spawnSync('/usr/bin/apt-get', ['install', '-y', '-q', '--no-install-recommends', 'chromium'], options)
}
