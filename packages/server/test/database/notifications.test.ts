import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, afterEach, before, describe, test } from 'node:test'
import { openNotifications } from '../../src/database/notifications.ts'
import { silentLog } from '../support/silent-log.ts'
import { openTestDatabase } from '../support/test-database.ts'
import { waitFor } from '../support/wait-for.ts'

describe('notifications between processes', () => {
  let database: Awaited<ReturnType<typeof openTestDatabase>>
  const opened: ReturnType<typeof openNotifications>[] = []
  before(async () => {
    database = await openTestDatabase({ migrated: false })
  })
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close()
  })
  after(() => database.drop())

  async function open() {
    const notifications = openNotifications({ ...database.direct, log: silentLog })
    opened.push(notifications)
    const heard: string[] = []
    let jobs = 0
    notifications.on('completed', (ids) => heard.push(...ids))
    notifications.on('jobs', () => jobs++)
    await waitFor(() => notifications.isListening())
    return { ...notifications, heard, countJobs: () => jobs }
  }

  test('arrive with every id that was sent, however many at once', async () => {
    const [one, two] = [await open(), await open()]
    const ids = Array.from({ length: 1000 }, () => randomUUID())
    for (const id of ids) one.send('completed', id)
    await waitFor(() => two.heard.length === ids.length)
    assert.deepEqual(two.heard.toSorted(), ids.toSorted())
  })

  test('are few messages for many sends, so that commits are not slowed', async () => {
    const [one, two] = [await open(), await open()]
    const before = two.countJobs()
    for (let i = 0; i < 10_000; i++) one.send('jobs')
    one.send('completed', 'last')
    await waitFor(() => two.heard.includes('last'))
    const messages = two.countJobs() - before
    assert.ok(messages >= 1 && messages <= 2, `${messages} messages`)
  })

  test('arrive again after connections were lost, and receivers look for work once', async () => {
    const [one, two] = [await open(), await open()]
    const before = two.countJobs()
    await database.pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = 'assay notifications'`,
    )
    await waitFor(() => !two.isListening() || two.countJobs() > before)
    await waitFor(() => one.isListening() && two.isListening() && two.countJobs() > before)
    one.send('completed', 'later')
    await waitFor(() => two.heard.includes('later'))
  })
})
