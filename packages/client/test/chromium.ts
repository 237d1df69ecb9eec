import type { TestContext } from 'node:test'
import type { Browser } from 'playwright-core'
import { lacksChromium, openChromium as open } from '../../../acceptance/support/chromium.ts'

/** Opens Debian's Chromium, installing it if the tests run as root. Otherwise skips the test and returns undefined. */
export async function openChromium(t: TestContext): Promise<Browser | undefined> {
  const lacking = lacksChromium()
  if (lacking !== false) {
    t.skip(lacking)
    return undefined
  }
  const browser = await open()
  t.after(() => browser.close())
  return browser
}
