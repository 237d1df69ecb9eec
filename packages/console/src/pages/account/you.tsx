import { useState } from 'react'
import { useChange, useRead, useSession } from '../../api/hooks.ts'
import { useForm } from '../../api/use-form.ts'
import { useSignOut } from '../../api/use-sign-out.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { Secret } from '../../ui/copy.tsx'
import { Actions, Dialog } from '../../ui/dialog.tsx'
import { Failure, Reading } from '../../ui/feedback.tsx'
import { TextField } from '../../ui/field.tsx'
import { toAge } from '../../ui/format.ts'
import { Card, Page } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'

/** What belongs to the person: password, authenticator app, sessions. */
export function YouPage() {
  const session = useSession()
  return (
    <Page title="You" about="How you sign in, and where you are signed in.">
      <PasswordCard />
      {session.data && <TotpCard hasTotp={session.data.member.has_totp} />}
      <SessionsCard />
    </Page>
  )
}

function PasswordCard() {
  const [isDone, setDone] = useState(false)
  const form = useForm(
    'changePassword',
    { current: '', next: '' },
    {
      onDone: () => {
        setDone(true)
        form.reset()
      },
    },
  )
  return (
    <Card title="Password">
      <form onSubmit={form.submit} className="flex max-w-sm flex-col gap-4" noValidate>
        <TextField
          label="Current password"
          type="password"
          autoComplete="current-password"
          value={form.values.current}
          error={form.errorOf('current')}
          onText={(current) => form.set({ current })}
        />
        <TextField
          label="New password"
          type="password"
          autoComplete="new-password"
          hint="At least 12 characters. Your other sessions end."
          value={form.values.next}
          error={form.errorOf('next')}
          onText={(next) => form.set({ next })}
        />
        <Failure error={form.error} />
        {isDone && <p role="status">The password is changed.</p>}
        <div>
          <Button type="submit" isBusy={form.isBusy}>
            Change password
          </Button>
        </div>
      </form>
    </Card>
  )
}

function TotpCard({ hasTotp }: { hasTotp: boolean }) {
  const start = useChange('startTotp')
  const [isRemoving, setRemoving] = useState(false)
  return (
    <Card
      title="Authenticator app"
      actions={<Badge tone={hasTotp ? 'clean' : 'plain'}>{hasTotp ? 'on' : 'off'}</Badge>}
    >
      <p className="mb-4 text-soft">
        A code of six digits beside the password: whoever learns the password alone does not get in.
      </p>
      {hasTotp ? (
        <Button onClick={() => setRemoving(true)}>Remove</Button>
      ) : (
        <Button onClick={() => start.mutate({})} isBusy={start.isPending}>
          Set up
        </Button>
      )}
      <Failure error={start.error} />
      {start.data !== undefined && !hasTotp && <ConfirmTotp {...start.data} onClose={start.reset} />}
      {isRemoving && <RemoveTotp onClose={() => setRemoving(false)} />}
    </Card>
  )
}

function ConfirmTotp({ secret, uri, onClose }: { secret: string; uri: string; onClose: () => void }) {
  const form = useForm('confirmTotp', { code: '' }, { onDone: onClose })
  return (
    <Dialog title="Set up your authenticator app" onClose={onClose}>
      <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
        <Secret label="Type this key into the app, or open the address below it on your phone." text={secret} />
        <Secret label="Address" text={uri} />
        <TextField
          label="The code that the app shows now"
          inputMode="numeric"
          autoComplete="one-time-code"
          value={form.values.code}
          error={form.errorOf('code')}
          onText={(code) => form.set({ code })}
        />
        <Failure error={form.error} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="main" isBusy={form.isBusy}>
            Turn on
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}

function RemoveTotp({ onClose }: { onClose: () => void }) {
  const form = useForm('removeTotp', { password: '' }, { onDone: onClose })
  return (
    <Dialog title="Sign in without a code" onClose={onClose}>
      <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
        <TextField
          label="Your password"
          type="password"
          autoComplete="current-password"
          value={form.values.password}
          error={form.errorOf('password')}
          onText={(password) => form.set({ password })}
        />
        <Failure error={form.error} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="danger" isBusy={form.isBusy}>
            Remove
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}

function SessionsCard() {
  const sessions = useRead('listSessions')
  const signOut = useSignOut('signOutEverywhere')
  const [isAsking, setAsking] = useState(false)
  return (
    <Card title="Sessions" actions={<Button onClick={() => setAsking(true)}>Sign out everywhere</Button>}>
      <Reading of={sessions}>
        {(rows) => (
          <Table
            caption="Your sessions"
            rows={rows}
            keyOf={({ id }) => id}
            columns={[
              {
                title: 'Browser',
                cell: ({ agent, is_this }) => (
                  <span className="flex flex-wrap items-center gap-x-2">
                    <span title={agent}>{toBrowser(agent)}</span>
                    {is_this && <Badge tone="brand">this one</Badge>}
                  </span>
                ),
              },
              { title: 'Address', cell: ({ address }) => <code className="font-mono text-xs">{address}</code> },
              { title: 'Last seen', cell: ({ last_seen_at }) => toAge(last_seen_at) },
            ]}
          />
        )}
      </Reading>
      {isAsking && (
        <Confirm
          title="Sign out everywhere"
          action="Sign out"
          of={signOut}
          onConfirm={() => signOut.mutate()}
          onClose={() => setAsking(false)}
        >
          All your sessions end, this one too. API keys go on working.
        </Confirm>
      )}
    </Card>
  )
}

/** Such as “Chrome on Linux”; what is no browser, such as a script, by its own name. */
function toBrowser(agent: string): string {
  const names: [string, string][] = [
    ['Edg/', 'Edge'],
    ['OPR/', 'Opera'],
    ['Firefox/', 'Firefox'],
    ['Chrome/', 'Chrome'],
    ['Safari/', 'Safari'],
  ]
  const systems: [string, string][] = [
    ['Windows', 'Windows'],
    ['Android', 'Android'],
    ['iPhone', 'iPhone'],
    ['iPad', 'iPad'],
    ['Mac OS', 'macOS'],
    ['Linux', 'Linux'],
  ]
  const find = (all: [string, string][]) => all.find(([mark]) => agent.includes(mark))?.[1]
  const name = find(names)
  if (name === undefined) return agent.slice(0, 60) || 'unknown'
  const system = find(systems)
  return system === undefined ? name : `${name} on ${system}`
}
