import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, describe, test } from 'node:test'
import { operations } from '@assay/contract'
import { type AdminRouteName, adminRoutes } from '@assay/contract/admin'
import { goodPassword, newEmail, nobody, openAccount, type Visitor } from '../support/console.ts'
import { assertProblem } from '../support/problems.ts'
import { getSharedService } from '../support/shared-service.ts'

const { admin, consoleLink, operate } = getSharedService()

const roles = ['nobody', 'member', 'owner', 'operator', 'operator with an account', 'operator token'] as const
type RoleName = (typeof roles)[number]

/** Written by hand, not from the table: whoever opens a route to more people must say so here, too. */
const everybody = [...roles]
const people: RoleName[] = ['member', 'owner', 'operator', 'operator with an account']
const holders: RoleName[] = ['member', 'owner', 'operator with an account']
const owners: RoleName[] = ['owner', 'operator with an account']
const operators: RoleName[] = ['operator', 'operator with an account', 'operator token']

const allowed: Record<AdminRouteName, RoleName[]> = {
  ...{ findLink: everybody, acceptLink: everybody, signIn: everybody },
  ...{ getSession: people, listSessions: people, signOut: people, signOutEverywhere: people, changePassword: people },
  ...{ startTotp: people, confirmTotp: people, removeTotp: people },
  ...{ getOverview: holders, listScans: holders, exportScans: holders, getScan: holders, getUsage: holders },
  ...{ listKeys: holders, createKey: holders, rotateKey: holders, revokeKey: holders },
  ...{ getWebhooks: holders, revealWebhookSecret: holders, rotateWebhookSecret: holders, testWebhook: holders },
  ...{ listDeliveries: holders, getDelivery: holders, replayDelivery: holders, replayFailed: holders },
  ...{ getAccount: holders, listMembers: holders, inviteMember: owners, removeMember: owners },
  ...{ getStatus: operators, listAccounts: operators, createAccount: operators, updateAccount: operators },
  ...{ inviteOwner: operators, grantCredits: operators, listLedger: operators },
  ...{ listPlans: operators, savePlan: operators, deletePlan: operators },
  ...{ listJobs: operators, retryJob: operators },
  ...{ listFailingHosts: operators, pauseHost: operators, replayHost: operators },
  ...{ getSignatures: operators, uploadSignatures: operators, removeSignatures: operators },
  ...{ updateSignatures: operators, runSelfTest: operators },
  ...{ listEntries: operators, addListEntry: operators, removeListEntry: operators },
  ...{ listAudit: operators, getSystem: operators, makeBackup: operators },
}

/** They do much, whoever asks: that they do it at all is tested elsewhere. */
const heavy: AdminRouteName[] = ['makeBackup', 'runSelfTest', 'updateSignatures']
/** Of these the session would not be left for the next. */
const closing: AdminRouteName[] = ['signOut', 'signOutEverywhere']

const routes = Object.entries(adminRoutes).map(([name, route]) => ({ ...route, name: name as AdminRouteName }))
const toPath = (path: string) => path.replaceAll(/\{\w+\}/g, randomUUID())

describe('the admin API', () => {
  const visitors = { nobody } as Record<RoleName, Visitor>
  const emails = {} as Record<RoleName, string>

  before(async () => {
    const account = await openAccount(admin)
    visitors.owner = account.owner
    emails.owner = account.email
    const invite = await admin.ask<{ url: string }>(account.owner, 'POST', '/members', { role: 'member' })
    const { path } = (await operate('operators', 'invite')) as { path: string }
    const links: [RoleName, string][] = [
      ['member', invite.url],
      ['operator', path],
      ['operator with an account', consoleLink],
    ]
    for (const [role, link] of links) {
      emails[role] = newEmail()
      visitors[role] = await admin.comeIn(link, emails[role])
    }
    visitors['operator token'] = admin.token
  })

  /** Everybody comes with what the session needs, so that nothing but the role decides. */
  const send = (role: RoleName, { name, method, path }: (typeof routes)[number], visitor = visitors[role]) =>
    admin.send(visitor, method, toPath(path), 'body' in adminRoutes[name] ? { body: {} } : {})

  test('every route is in the matrix', () => {
    assert.deepEqual(Object.keys(allowed).sort(), Object.keys(adminRoutes).sort())
  })

  for (const role of roles) {
    test(`${role}: may do what the matrix says, and nothing else`, async () => {
      for (const route of routes) {
        const about = `${role}: ${route.method} ${route.path}`
        if (allowed[route.name].includes(role)) {
          if (heavy.includes(route.name)) continue
          const fresh = closing.includes(route.name) && emails[role] !== undefined
          const visitor = fresh ? await admin.toVisitor(await admin.signIn(emails[role])) : visitors[role]
          // Its form is empty and its ids are nobody's: it gets as far as being told that.
          const answer = await send(role, route, visitor)
          assert([200, 204, 404, 409, 422].includes(answer.status), `${about}: ${answer.status} ${answer.text}`)
          if (route.name === 'signOutEverywhere') {
            visitors[role] = await admin.toVisitor(await admin.signIn(emails[role]))
          }
        } else {
          const expected = role === 'nobody' ? { status: 401, kind: 'signed-out' as const } : forbidden
          await assertProblem(await send(role, route), expected, about)
        }
      }
    })
  }

  test('the scans of the console are for those who hold an account', async () => {
    for (const operation of operations.filter(({ method }) => method === 'POST')) {
      const path = `/scan${operation.path.slice('/v1'.length)}`
      for (const role of roles) {
        const about = `${role}: ${path}`
        const answer = await admin.send(visitors[role], 'POST', path, { body: {} })
        if (role === 'nobody') await assertProblem(answer, { status: 401, kind: 'signed-out' }, about)
        else if (!holders.includes(role)) await assertProblem(answer, forbidden, about)
        else assert([415, 422].includes(answer.status), `${about}: ${answer.status} ${answer.text}`)
      }
    }
  })

  test('no change without the CSRF token of that very session', async () => {
    const of = (role: RoleName) => visitors[role]['x-csrf-token'] ?? ''
    const wrong = [undefined, '', 'x', of('owner').slice(1), of('operator')]
    const changes = routes.filter(({ method, access }) => method !== 'GET' && access !== 'anyone')
    assert(changes.length > 25)
    for (const route of changes) {
      for (const role of ['owner', 'operator with an account'] as const) {
        if (!allowed[route.name].includes(role)) continue
        for (const token of wrong) {
          const answer = await admin.send(visitors[role], route.method, toPath(route.path), {
            ...('body' in adminRoutes[route.name] ? { body: {} } : {}),
            headers: { 'x-csrf-token': token },
          })
          await assertProblem(answer, forbidden, `${role}: ${route.method} ${route.path} with ${token}`)
        }
      }
    }
    const scan = await admin.send(visitors.owner, 'POST', '/scan/malware/scan/url', {
      ...{ body: { file_url: 'http://example.com/' }, headers: { 'x-csrf-token': undefined } },
    })
    await assertProblem(scan, forbidden)
    // Whoever can send a header of their own is no form of another site.
    assert.equal((await admin.send(visitors.owner, 'GET', '/session', { headers: { 'x-csrf-token': '' } })).status, 200)
  })

  test('a cookie or a token that is not right is nobody’s', async () => {
    const { cookie = '' } = visitors.owner
    const wrong: Visitor[] = [
      { cookie: 'assay_session=' },
      { cookie: `assay_session=${'A'.repeat(43)}` },
      { cookie: cookie.slice(0, -1) },
      { cookie: cookie.toUpperCase() },
      { cookie: `assay_session=${'%00'.repeat(9)}; assay_session=x` },
      { authorization: 'Bearer x' },
      { authorization: `Bearer ${cookie.split('=')[1]}` },
      { authorization: `Basic ${Buffer.from(`x:${goodPassword}`).toString('base64')}` },
      { authorization: admin.token.authorization?.slice(0, -1) ?? '' },
      // A token that is wrong is not made right by a session beside it.
      { authorization: 'Bearer x', cookie },
    ]
    for (const visitor of wrong) {
      const answer = await admin.send(visitor, 'GET', '/session')
      await assertProblem(answer, { status: 401, kind: 'signed-out' }, JSON.stringify(visitor))
    }
  })

  test('an API key opens nothing here, and a session opens nothing at /v1', async () => {
    const { api_key } = await admin.createAccount()
    const overview = await admin.send({ 'x-api-key': api_key }, 'GET', '/overview')
    await assertProblem(overview, { status: 401, kind: 'signed-out' })
    const me = await fetch(`${getSharedService().url}/v1/me`, { headers: { cookie: visitors.owner.cookie ?? '' } })
    assert.equal(me.status, 401)
  })

  test('whoever was refused is in no entry of the audit log for it', async () => {
    const page = await admin.ask<{ items: { actor: string }[] }>(
      ...([admin.token, 'GET', '/operator/audit?limit=100&action=account.'] as const),
    )
    const refused = [emails.member, emails.owner]
    assert.deepEqual(
      page.items.filter(({ actor }) => refused.includes(actor)),
      [],
    )
  })
})

const forbidden = { status: 403, kind: 'forbidden' as const }
