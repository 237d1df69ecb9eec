import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

const executablePath = '/usr/bin/chromium'

/** Debian's Chromium, installed when the tests run as root; otherwise the reason to skip tests that need it. */
export function lacksChromium(): string | false {
  if (!existsSync(executablePath) && process.getuid?.() === 0) install()
  return existsSync(executablePath) ? false : 'chromium is not installed, and only root may install it'
}

/** Chromium's sandbox does not work for root. */
export const openChromium = (): Promise<Browser> => chromium.launch({ executablePath, args: ['--no-sandbox'] })

function install() {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const options = { stdio: 'ignore', timeout: 90_000, env } as const
  spawnSync('/usr/bin/apt-get', ['install', '-y', '-q', '--no-install-recommends', 'chromium'], options)
}
