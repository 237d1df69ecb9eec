import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { getSharedService } from '../support/shared-service.ts'
import { startService, withoutImages } from '../support/start-service.ts'

const service = getSharedService()

const pingAll = (count: number, urls: string[], apiKey: string) =>
  Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const answer = await fetch(`${urls[i % urls.length]}/v1/ping`, { headers: { 'x-api-key': apiKey } })
      return answer.status
    }),
  )

const count = (statuses: number[], status: number) => statuses.filter((s) => s === status).length

test('of 120 parallel requests on a rate of 50 a minute exactly 50 pass', async () => {
  const { api_key } = await service.createAccount('--rate', '50/1m')
  const statuses = await pingAll(120, [service.url], api_key)
  assert.deepEqual([count(statuses, 200), count(statuses, 429)], [50, 70])
})

test('two services on one database admit exactly as many requests as one', { skip: isEmbedded() }, async () => {
  const second = await startService({ ...withoutImages, ...getSharedSettings() })
  try {
    const { api_key, id } = await service.createAccount('--rate', '50/1m')
    const statuses = await pingAll(120, [service.url, second.url], api_key)
    assert.deepEqual([count(statuses, 200), count(statuses, 429)], [50, 70])

    const keys = (await service.operate('keys', 'list', '--account', id)) as { id: string }[]
    await service.operate('keys', 'revoke', keys[0]?.id ?? '')
    assert.deepEqual(await pingAll(2, [service.url, second.url], api_key), [401, 401])
  } finally {
    await second.stop()
  }
})

/** An embedded database has one service by design; a second one is refused (see start.test.ts). */
function isEmbedded() {
  return !findSettings().ASSAY_DATABASE_URL
}

function findSettings(): NodeJS.ProcessEnv {
  const { settings } = JSON.parse(process.env.ASSAY_TEST_SERVICE ?? '{}') as { settings?: NodeJS.ProcessEnv }
  return settings ?? {}
}

/** The settings that all services of one database share: its address and its master key. */
function getSharedSettings(): NodeJS.ProcessEnv {
  const { ASSAY_DATABASE_URL, ASSAY_DATA_DIR = '' } = findSettings()
  return { ASSAY_DATABASE_URL, ASSAY_MASTER_KEY: readFileSync(join(ASSAY_DATA_DIR, 'master.key'), 'utf8').trim() }
}
