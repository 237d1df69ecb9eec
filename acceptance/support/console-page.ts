import assert from 'node:assert/strict'
import axe from 'axe-core'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'

/** Every page of the console by its address, with the heading it has. */
export const accountPages: Record<string, string> = {
  '/': 'Overview',
  '/scan': 'Scan',
  '/history': 'History',
  '/usage': 'Usage',
  '/keys': 'API keys',
  '/webhooks': 'Webhooks',
  '/account': 'Account',
  '/you': 'You',
}
export const operatorPages: Record<string, string> = {
  '/operator/status': 'Status',
  '/operator/accounts': 'Accounts',
  '/operator/plans': 'Plans',
  '/operator/jobs': 'Jobs',
  '/operator/deliveries': 'Deliveries',
  '/operator/signatures': 'Signatures and models',
  '/operator/lists': 'Allow and block',
  '/operator/audit': 'Audit log',
  '/operator/system': 'System',
}

/** A window on the console. What must never happen there is written down: another host, a breach of the CSP, an error. */
export async function openWindow(browser: Browser, url: string, options: BrowserContextOptions = {}) {
  // Colours that are on their way from one to the other are neither.
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    reducedMotion: 'reduce',
    ...options,
  })
  await context.addInitScript({ content: axe.source })
  const page = await context.newPage()
  page.setDefaultTimeout(30_000)
  const faults: string[] = []
  page.on('request', (request) => {
    const isOwn = request.url().startsWith(`${url}/`) || /^(data|blob):/.test(request.url())
    if (!isOwn) faults.push(`a request to ${request.url()}`)
  })
  page.on('pageerror', (error) => faults.push(`an error: ${error.message}`))
  page.on('console', (message) => {
    // Browsers tell of every refused request; whether it may be refused is for each test to know.
    const isRefusal = message.text().startsWith('Failed to load resource')
    if (message.type() === 'error' && !isRefusal) faults.push(`the console says: ${message.text()}`)
  })
  return {
    page,
    open: async (path: string) => {
      await page.goto(`${url}/console${path}`)
    },
    /** Nothing of the kind has happened. */
    assertNoFaults: () => assert.deepEqual(faults, []),
    close: () => context.close(),
  }
}

export type Window = Awaited<ReturnType<typeof openWindow>>

/** What axe finds serious or critical on the page as it is shown now; `rules`: by these alone. */
export const listSerious = (page: Page, rules: string[] = []): Promise<string[]> =>
  page.evaluate(async (rules) => {
    type Violation = { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }
    type Axe = { run(options: object): Promise<{ violations: Violation[] }> }
    const { axe } = globalThis as unknown as { axe: Axe }
    const { violations } = await axe.run(rules.length === 0 ? {} : { runOnly: rules })
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) =>
        nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`),
      )
  }, rules)

// As text: these run in the page, whose types are not those of the tests.

/** By how many pixels the page is wider than the window. */
export const measureOverflow = (page: Page): Promise<number> =>
  page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')

export const readTheme = (page: Page): Promise<string> => page.evaluate('document.documentElement.dataset.theme')

export const setTheme = (page: Page, theme: 'light' | 'dark'): Promise<unknown> =>
  page.evaluate(`document.documentElement.dataset.theme = '${theme}'`)
