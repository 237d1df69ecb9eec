import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

/** The engine of Chromium without the browser around it takes less than half the processor time. */
const headlessShell = '/usr/bin/chromium-headless-shell'
const programs = [headlessShell, '/usr/bin/chromium']

/** Debian's Chromium, installed when the tests run as root; otherwise the reason to skip tests that need it. */
export function lacksChromium(): string | false {
  if (!existsSync(headlessShell) && process.getuid?.() === 0) install()
  return programs.some((path) => existsSync(path)) ? false : 'chromium is not installed, and only root may install it'
}

/** Chromium's sandbox does not work for root. */
export function openChromium(): Promise<Browser> {
  const executablePath = programs.find((path) => existsSync(path)) ?? headlessShell
  return chromium.launch({ executablePath, args: ['--no-sandbox'] })
}

function install() {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const options = { stdio: 'ignore', timeout: 90_000, env } as const
  // Another test file may be installing it at the same time.
  const wait = ['-o', 'DPkg::Lock::Timeout=60']
  const args = ['install', '-y', '-q', '--no-install-recommends', 'chromium-headless-shell']
  spawnSync('/usr/bin/apt-get', [...wait, ...args], options)
}
