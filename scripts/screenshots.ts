import { randomInt } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { eicar } from '../acceptance/support/archives.ts'
import { openChromium } from '../acceptance/support/chromium.ts'
import { goodPassword } from '../acceptance/support/console.ts'
import { accountPages, openWindow, operatorPages, setTheme, type Window } from '../acceptance/support/console-page.ts'
import { openReceiver } from '../acceptance/support/receiver.ts'
import { type Service, startService } from '../acceptance/support/start-service.ts'
import { makeCaller } from '../acceptance/support/submitting.ts'
import { openEmbedded } from '../packages/server/src/database/embedded/open-embedded.ts'
import { newClosers } from '../packages/server/src/runtime/closers.ts'
import { makeLogger } from '../packages/server/src/runtime/logger.ts'
import { testNetwork } from './test-origin.ts'

/**
 * Takes the pictures of the console in the README, light and dark, from a real service with sample data. With a
 * directory as argument, it takes pictures of every page there instead, on a large screen, a small laptop and a phone.
 */
const root = fileURLToPath(new URL('../', import.meta.url))
const directory = process.argv[2]
const images = directory === undefined ? join(root, 'docs/images') : resolve(directory)
const themes = ['light', 'dark'] as const
const sizes = { 1440: 900, 1024: 768, 390: 844 }
const names = [
  'invoice-2026-11.pdf',
  'holiday.png',
  'report.docx',
  'backup.zip',
  'avatar.jpg',
  'setup.exe',
  'notes.txt',
]

await import('./build-console.ts')
const closers = newClosers()
try {
  mkdirSync(images, { recursive: true })
  const dataDir = mkdtempSync(join(tmpdir(), 'assay-screenshots-'))
  closers.add(() => rmSync(dataDir, { recursive: true, force: true }))
  const log = makeLogger({ level: 'warn', region: 'test' })
  const database = await openEmbedded({ dataDir, as: 'command', log })
  closers.add(database.close)
  const service = await startService({ ASSAY_DATABASE_URL: database.url, ASSAY_OUTBOUND_ALLOW: testNetwork })
  closers.add(() => service.stop())
  const receiver = await openReceiver()
  closers.add(receiver.close)
  await makeHistory(service, receiver.url, database.url)

  const browser = await openChromium()
  closers.add(() => browser.close())
  const window = await openWindow(browser, service.url)
  await signUp(service, window)
  if (directory === undefined) await takeForReadme(window)
  else await takeAll(window)
} finally {
  await closers.closeAll()
}

async function takeForReadme(window: Window) {
  await window.page.waitForLoadState('networkidle')
  await takeInThemes(window.page, 'console-overview')
  await showResult(window)
  await takeInThemes(window.page, 'console-result')
}

async function takeAll({ page, open }: Window) {
  for (const [path, heading] of Object.entries({ ...accountPages, ...operatorPages })) {
    await open(path)
    await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor()
    const name = path === '/' ? 'overview' : path.slice(1).replaceAll('/', '-')
    for (const [width, height] of Object.entries(sizes)) {
      await page.setViewportSize({ width: Number(width), height })
      await page.waitForLoadState('networkidle')
      await takeInThemes(page, `${name}-${width}`, true)
    }
  }
}

async function takeInThemes(page: Window['page'], name: string, fullPage = false) {
  for (const theme of themes) {
    await setTheme(page, theme)
    await page.screenshot({ path: join(images, `${name}-${theme}.png`), fullPage })
  }
}

/** Adds some weeks of use to an account by dating new scans back. */
async function makeHistory(service: Service, receiver: string, databaseUrl: string) {
  const caller = makeCaller(service.url, service.apiKey)
  const picture = readFileSync(join(root, 'docs/test-images/pornography.png'))
  for (let n = 0; n < 240; n++) {
    const name = names[n % names.length] ?? ''
    if (n % 24 === 5) await caller.sendFile('malware', 'scan', eicar, { file_name: 'attachment.exe' })
    else if (n % 60 === 7) await caller.sendFile('nsfw/images', 'scan', picture, { file_name: 'upload.png' })
    else await caller.sendFile('malware', 'scan', `content ${n}`, { file_name: name })
  }
  const client = new pg.Client(databaseUrl)
  await client.connect()
  const { rows } = await client.query<{ id: string }>('select id from scans order by created_at limit 220')
  for (const { id } of rows) {
    const days = Math.floor(30 * (randomInt(1000) / 1000) ** 1.6)
    await client.query(
      `update scans set created_at = created_at - $2 * interval '1 day', completed_at = completed_at - $2 * interval '1 day'
       where id = $1`,
      [id, days],
    )
  }
  await client.end()
  for (let n = 0; n < 3; n++) {
    await caller.sendFile('malware', 'submit', `background ${n}`, {
      file_name: `video-${n + 1}.mp4`,
      callback_url: `${receiver}/webhooks/assay`,
    })
  }
}

async function signUp(service: Service, { page }: Window) {
  await page.goto(service.consoleLink)
  await page.getByLabel('Your name').fill('Ada Lovelace')
  await page.getByLabel('Email').fill('ada@example.com')
  await page.getByLabel('Password').fill(goodPassword)
  await page.getByRole('button', { name: 'Start' }).click()
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
}

async function showResult({ page }: Window) {
  await page.getByRole('link', { name: 'Scan', exact: true }).click()
  await page.getByRole('button', { name: 'EICAR test file' }).click()
  await page.getByRole('article', { name: 'Result' }).waitFor()
}
