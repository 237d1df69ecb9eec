import { makeListStore } from '../database/console/list-store.ts'
import { makeRejectedRequestStore } from '../database/console/rejected-request-store.ts'
import type { Database } from '../database/open-database.ts'
import { systemClock } from '../runtime/clock.ts'
import type { CleanupTask } from '../workers/sweeper.ts'
import { makeAuth } from './auth.ts'

const dayMs = 86_400_000
/** The usage page shows 30 days. */
const rejectedRequestDays = 40

/** What of the console goes by itself when its time is over. */
export function listConsoleCleanupTasks(database: Database): CleanupTask[] {
  const ago = (days: number) => new Date(systemClock.now().getTime() - days * dayMs)
  const { members } = makeAuth(database)
  const lists = makeListStore(database)
  const refusals = makeRejectedRequestStore(database)
  return [
    { name: 'sessions and links that ended', sweep: () => members.sweep(ago(0), ago(1)) },
    { name: 'entries of lists that ended', sweep: () => lists.deleteExpired(ago(0)) },
    { name: 'refusals that no page shows', sweep: () => refusals.deleteOld(ago(rejectedRequestDays)) },
  ]
}
