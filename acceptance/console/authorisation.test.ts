import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, describe, test } from 'node:test'
import { operations } from '@assay/contract'
import { type AdminRouteName, adminRoutes } from '@assay/contract/admin'
import { goodPassword, newEmail, nobody, openAccount, type Visitor } from '../support/console.ts'
import { assertProblem } from '../support/problems.ts'
import { getSharedService } from '../support/shared-service.ts'

const { admin, operate } = getSharedService()

const roles = ['nobody', 'member', 'owner', 'operator', 'operator with an account', 'operator token'] as const
type RoleName = (typeof roles)[number]

/** Written by hand instead of derived from the route table, so that a change of access must be made twice. */
const everybody = [...roles]
const people: RoleName[] = ['member', 'owner', 'operator', 'operator with an account']
const accountRoles: RoleName[] = ['member', 'owner', 'operator with an account']
const owners: RoleName[] = ['owner', 'operator with an account']
const operators: RoleName[] = ['operator', 'operator with an account', 'operator token']

/** Names of routes, separated by spaces. */
const routesByAccess: [RoleName[], string][] = [
  [everybody, 'findLink acceptLink signIn getSso startSso finishSso'],
  [people, 'getSession listSessions signOut signOutEverywhere changePassword startTotp confirmTotp'],
  [people, 'linkSso unlinkSso endSession chooseAccount renewRecoveryCodes removeTotp'],
  [accountRoles, 'getAccountActivity listAccountRevisions getRevisionWebhook'],
  [owners, 'setRevisionWebhook'],
  [operators, 'listHashLists removeHashList listRevisions'],
  [
    accountRoles,
    'getOverview listScans getScan getReceipt getUsage listKeys createKey rotateKey restrictKey revokeKey',
  ],
  [accountRoles, 'getWebhooks revealWebhookSecret rotateWebhookSecret testWebhook listDeliveries getDelivery'],
  [accountRoles, 'replayDelivery replayFailed getAccount listMembers'],
  [owners, 'inviteMember removeMember listNotices confirmNotices'],
  [operators, 'getActivity getAlerts addAlertChannel updateAlertChannel removeAlertChannel testAlertChannel'],
  [owners, 'getAccountAlerts addAccountAlertChannel updateAccountAlertChannel removeAccountAlertChannel'],
  [owners, 'testAccountAlertChannel'],
  [owners, 'listDownloadCredentials addDownloadCredential removeDownloadCredential'],
  [operators, 'listDownloadCredentialsOf addDownloadCredentialOf removeDownloadCredentialOf'],
  [operators, 'getStatus listAccounts createAccount updateAccount inviteOwner grantCredits listLedger'],
  [operators, 'listOperators suspendOperator removeOperator'],
  [operators, 'listPlans savePlan deletePlan listJobs retryJob listFailingHosts pauseHost replayHost'],
  [operators, 'getSignatures uploadSignatures removeSignatures updateSignatures runSelfTest listEntries'],
  [operators, 'listSources updateSource'],
  [operators, 'addListEntry removeListEntry listAudit getSystem makeBackup'],
]

/** The roles that may use each route. */
const allowed = Object.fromEntries(
  routesByAccess.flatMap(([roles, names]) => names.split(' ').map((name) => [name, roles])),
) as Record<AdminRouteName, RoleName[]>

/** Expensive routes, which other tests call. */
const expensive: AdminRouteName[] = ['makeBackup', 'runSelfTest', 'updateSignatures']
/** Routes that end the session, so they need a session of their own. */
const sessionEnding: AdminRouteName[] = ['signOut', 'signOutEverywhere']

const routes = Object.entries(adminRoutes).map(([name, route]) => ({ ...route, name: name as AdminRouteName }))
const toPath = (path: string) => path.replaceAll(/\{\w+\}/g, randomUUID())

describe('the admin API', () => {
  const visitors = { nobody } as Record<RoleName, Visitor>
  const emails = {} as Record<RoleName, string>

  before(async () => {
    const account = await openAccount(admin)
    visitors.owner = account.owner
    emails.owner = account.email
    emails.member = newEmail()
    const invitation = { role: 'member', email: emails.member }
    const invite = await admin.ask<{ url: string }>(account.owner, 'POST', '/members', invitation)
    const inviteOperator = async () => ((await operate('operators', 'invite')) as { path: string }).path
    const links: [RoleName, string][] = [
      ['member', invite.url],
      // The first operator of the service gets an account.
      ['operator with an account', await inviteOperator()],
      ['operator', await inviteOperator()],
    ]
    for (const [role, link] of links) {
      emails[role] ??= newEmail()
      visitors[role] = await admin.join(link, emails[role])
    }
    const email = emails['operator with an account']
    const { invitation_url } = await admin.createAccount({ owner_email: email })
    visitors['operator with an account'] = await admin.join(invitation_url ?? '', email)
    visitors['operator token'] = admin.token
  })

  /** Sends a request with a valid session and CSRF token, so that only the role decides. */
  const send = (role: RoleName, { name, method, path }: (typeof routes)[number], visitor = visitors[role]) =>
    admin.send(visitor, method, toPath(path), 'body' in adminRoutes[name] ? { body: {} } : {})

  test('every route is in the matrix', () => {
    assert.deepEqual(Object.keys(allowed).sort(), Object.keys(adminRoutes).sort())
  })

  for (const role of roles) {
    test(`${role}: has exactly the access in the matrix`, async () => {
      for (const route of routes) {
        const about = `${role}: ${route.method} ${route.path}`
        if (allowed[route.name].includes(role)) {
          if (expensive.includes(route.name)) continue
          const needsSession = sessionEnding.includes(route.name) && emails[role] !== undefined
          const visitor = needsSession ? await admin.toVisitor(await admin.signIn(emails[role])) : visitors[role]
          // The form is empty and the ids do not exist, so a permitted request fails only for those reasons.
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

  test('the scans of the console require an account', async () => {
    for (const operation of operations.filter(({ method }) => method === 'POST')) {
      const path = `/scan${operation.path.slice('/v1'.length)}`
      for (const role of roles) {
        const about = `${role}: ${path}`
        const answer = await admin.send(visitors[role], 'POST', path, { body: {} })
        if (role === 'nobody') await assertProblem(answer, { status: 401, kind: 'signed-out' }, about)
        else if (!accountRoles.includes(role)) await assertProblem(answer, forbidden, about)
        else assert([415, 422].includes(answer.status), `${about}: ${answer.status} ${answer.text}`)
      }
    }
  })

  test('every change requires the CSRF token of the same session', async () => {
    const tokenOf = (role: RoleName) => visitors[role]['x-csrf-token'] ?? ''
    const wrong = [undefined, '', 'x', tokenOf('owner').slice(1), tokenOf('operator')]
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
      body: { file_url: 'http://example.com/' },
      headers: { 'x-csrf-token': undefined },
    })
    await assertProblem(scan, forbidden)
    // Reading requires no token: a form on another site cannot read the response.
    assert.equal((await admin.send(visitors.owner, 'GET', '/session', { headers: { 'x-csrf-token': '' } })).status, 200)
  })

  test('an invalid cookie or token is rejected', async () => {
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
      // A valid session does not make up for a wrong token.
      { authorization: 'Bearer x', cookie },
    ]
    for (const visitor of wrong) {
      const answer = await admin.send(visitor, 'GET', '/session')
      await assertProblem(answer, { status: 401, kind: 'signed-out' }, JSON.stringify(visitor))
    }
  })

  test('an API key is not valid here, and a session is not valid at /v1', async () => {
    const { api_key } = await admin.createAccount()
    const overview = await admin.send({ 'x-api-key': api_key }, 'GET', '/overview')
    await assertProblem(overview, { status: 401, kind: 'signed-out' })
    const me = await fetch(`${getSharedService().url}/v1/me`, { headers: { cookie: visitors.owner.cookie ?? '' } })
    assert.equal(me.status, 401)
  })

  test('rejected requests leave no entry in the audit log', async () => {
    type Page = { items: { actor: string }[] }
    const page = await admin.ask<Page>(admin.token, 'GET', '/operator/audit?limit=100&action=account.')
    const rejected = [emails.member, emails.owner]
    assert.deepEqual(
      page.items.filter(({ actor }) => rejected.includes(actor)),
      [],
    )
  })
})

const forbidden = { status: 403, kind: 'forbidden' as const }
