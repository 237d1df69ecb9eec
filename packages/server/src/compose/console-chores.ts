import { makeListStore } from '../database/console/list-store.ts'
import { makeRefusalStore } from '../database/console/refusal-store.ts'
import type { Database } from '../database/open-database.ts'
import { systemClock } from '../runtime/clock.ts'
import type { Chore } from '../workers/sweeper.ts'
import { makeEntrance } from './entrance.ts'

const dayMs = 86_400_000
/** The usage page shows 30 days. */
const refusalDays = 40

/** What of the console goes by itself when its time is over. */
export function listConsoleChores(database: Database): Chore[] {
  const ago = (days: number) => new Date(systemClock.now().getTime() - days * dayMs)
  const { members } = makeEntrance(database)
  const lists = makeListStore(database)
  const refusals = makeRefusalStore(database)
  return [
    { name: 'sessions and links that ended', sweep: () => members.sweep(ago(0), ago(1)) },
    { name: 'entries of lists that ended', sweep: () => lists.deleteExpired(ago(0)) },
    { name: 'refusals that no page shows', sweep: () => refusals.deleteOld(ago(refusalDays)) },
  ]
}
