import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'

/** The path and heading of every page for account members. */
export const accountPages: Record<string, string> = {
  '/': 'Overview',
  '/scan': 'Scan',
  '/history': 'History',
  '/revisions': 'Revisions',
  '/usage': 'Usage',
  '/keys': 'API keys',
  '/webhooks': 'Webhooks',
  '/alerts': 'Alerts',
  '/account': 'Account',
  '/you': 'You',
}
/** The path and heading of every page for operators. */
export const operatorPages: Record<string, string> = {
  '/operator/status': 'Status',
  '/operator/accounts': 'Accounts',
  '/operator/plans': 'Plans',
  '/operator/operators': 'Operators',
  '/operator/jobs': 'Jobs',
  '/operator/deliveries': 'Deliveries',
  '/operator/alerts': 'Alerts',
  '/operator/signatures': 'Signatures and models',
  '/operator/lists': 'Allow and block',
  '/operator/hash-lists': 'Hash lists',
  '/operator/audit': 'Audit log',
  '/operator/system': 'System',
}

/** A browser window that records faults: requests to other hosts, violations of the CSP, and script errors. */
export async function openWindow(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
  /** Other origins that the test visits. */
  visited: string[] = [],
) {
  // Reduced motion disables colour transitions, during which axe would measure wrong contrasts.
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    reducedMotion: 'reduce',
    ...options,
  })
  const page = await context.newPage()
  // On a busy machine the reference takes longer than the 30 s that are usual.
  page.setDefaultTimeout(120_000)
  const faults: string[] = []
  page.on('request', (request) => {
    const isVisited = [url, ...visited].some((origin) => request.url().startsWith(`${origin}/`))
    const isOwn = isVisited || /^(data|blob):/.test(request.url())
    if (!isOwn) faults.push(`a request to ${request.url()}`)
  })
  page.on('pageerror', (error) => faults.push(`an error: ${error.message}`))
  page.on('console', (message) => {
    // Browsers log every failed request; the tests check the expected ones themselves.
    const isFailedRequest = message.text().startsWith('Failed to load resource')
    if (message.type() === 'error' && !isFailedRequest) faults.push(`the console says: ${message.text()}`)
  })
  return {
    page,
    open: async (path: string) => {
      await page.goto(`${url}/console${path}`)
    },
    assertNoFaults: () => assert.deepEqual(faults, []),
    close: () => context.close(),
  }
}

export type Window = Awaited<ReturnType<typeof openWindow>>

const axeSource = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

/** Serious and critical findings of axe on the current page, limited to `rules` if given. */
export async function listSerious(page: Page, rules: string[] = []): Promise<string[]> {
  // Not an init script of the window, because every page that a test opens would compile its half megabyte.
  if (await page.evaluate<boolean>('globalThis.axe === undefined')) await page.evaluate(axeSource)
  return page.evaluate(async (rules) => {
    type Violation = { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }
    type Axe = { run(options: object): Promise<{ violations: Violation[] }> }
    const { axe } = globalThis as unknown as { axe: Axe }
    // Describing every element that passes takes most of the time of axe.
    const options = { resultTypes: ['violations'], selectors: false, preload: false }
    const { violations } = await axe.run(rules.length === 0 ? options : { ...options, runOnly: rules })
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) =>
        nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`),
      )
  }, rules)
}

// These scripts are strings because they run in the page, whose types the tests do not have.

/** Buttons in tables that lie beyond the right edge of the table, where nobody sees them without scrolling. */
export const listHiddenActions = (page: Page): Promise<string[]> =>
  page.evaluate(`[...document.querySelectorAll('table button')]
    .filter((button) => {
      const { right, width } = button.getBoundingClientRect()
      return width > 0 && right > button.closest('section').getBoundingClientRect().right
    })
    .map((button) => button.textContent)`)

/** Pixels by which the page is wider than the window. */
export const measureOverflow = (page: Page): Promise<number> =>
  page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')

export const readTheme = (page: Page): Promise<string> => page.evaluate('document.documentElement.dataset.theme')

export const setTheme = (page: Page, theme: 'light' | 'dark'): Promise<unknown> =>
  page.evaluate(`document.documentElement.dataset.theme = '${theme}'`)

/** Findings of axe on the current state of a page in both themes, and what a phone does not show of it. */
export async function listFindings(page: Page): Promise<string[]> {
  const findings: string[] = []
  for (const theme of ['light', 'dark'] as const) {
    await setTheme(page, theme)
    findings.push(...(await listSerious(page, theme === 'dark' ? ['color-contrast'] : [])))
  }
  await page.setViewportSize({ width: 360, height: 740 })
  if ((await measureOverflow(page)) > 0) findings.push('too wide for a phone')
  findings.push(...(await listHiddenActions(page)).map((name) => `hides ${name} on a phone`))
  await page.setViewportSize({ width: 1280, height: 800 })
  return findings
}
