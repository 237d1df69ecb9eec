import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import { installPackages } from './install-packages.ts'

/** The engine of Chromium without the browser around it takes less than half the processor time. */
const headlessShell = '/usr/bin/chromium-headless-shell'
const programs = [headlessShell, '/usr/bin/chromium']

/** Debian's Chromium, installed when the tests run as root; otherwise the reason to skip tests that need it. */
export function lacksChromium(): string | false {
  if (!existsSync(headlessShell)) installPackages(['chromium-headless-shell'])
  return programs.some((path) => existsSync(path)) ? false : 'chromium is not installed, and only root may install it'
}

/** Chromium's sandbox does not work for root. */
export function openChromium(): Promise<Browser> {
  const executablePath = programs.find((path) => existsSync(path)) ?? headlessShell
  return chromium.launch({ executablePath, args: ['--no-sandbox'] })
}
