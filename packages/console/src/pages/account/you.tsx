import { useState } from 'react'
import { useRead, useSession } from '../../api/hooks.ts'
import { useForm } from '../../api/use-form.ts'
import { useSignOut } from '../../api/use-sign-out.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { Secret } from '../../ui/copy.tsx'
import { FormDialog, InfoDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { toAge } from '../../ui/format.ts'
import { Card, Page } from '../../ui/page.tsx'
import { ErrorMessage, Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'

export function YouPage() {
  const session = useSession()
  return (
    <Page title="You" about="Your password, authenticator app and sessions.">
      <PasswordCard />
      {session.data && (
        <TotpCard hasTotp={session.data.member.has_totp} codesLeft={session.data.member.recovery_codes_left} />
      )}
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
        <TextField label="Current password" type="password" autoComplete="current-password" {...form.text('current')} />
        <TextField
          label="New password"
          type="password"
          autoComplete="new-password"
          hint="At least 12 characters. Changing it ends your other sessions."
          {...form.text('next')}
        />
        <ErrorMessage error={form.error} />
        {isDone && <p role="status">Password changed.</p>}
        <div>
          <Button type="submit" isBusy={form.isBusy}>
            Change password
          </Button>
        </div>
      </form>
    </Card>
  )
}

function TotpCard({ hasTotp, codesLeft }: { hasTotp: boolean; codesLeft: number }) {
  const [isStarting, setStarting] = useState(false)
  const [started, setStarted] = useState<TotpSecret>()
  const [isRemoving, setRemoving] = useState(false)
  const [isRenewing, setRenewing] = useState(false)
  const [codes, setCodes] = useState<string[]>()
  return (
    <Card
      title="Authenticator app"
      actions={<Badge tone={hasTotp ? 'clean' : 'plain'}>{hasTotp ? 'on' : 'off'}</Badge>}
    >
      <p className="mb-4 text-soft">
        With an authenticator app, each sign-in needs a six-digit code in addition to the password.
      </p>
      {hasTotp ? (
        <div className="flex flex-col items-start gap-4">
          <p>
            {codesLeft === 1 ? 'One recovery code is' : `${codesLeft} recovery codes are`} left. Each replaces a code of
            the app once.
          </p>
          <span className="flex gap-2">
            <Button onClick={() => setRenewing(true)}>New recovery codes</Button>
            <Button onClick={() => setRemoving(true)}>Remove</Button>
          </span>
        </div>
      ) : (
        <Button onClick={() => setStarting(true)}>Set up</Button>
      )}
      {isStarting && <StartTotp onStarted={setStarted} onClose={() => setStarting(false)} />}
      {started !== undefined && !hasTotp && (
        <ConfirmTotp {...started} onCodes={setCodes} onClose={() => setStarted(undefined)} />
      )}
      {isRemoving && <RemoveTotp onClose={() => setRemoving(false)} />}
      {isRenewing && <RenewCodes onCodes={setCodes} onClose={() => setRenewing(false)} />}
      {codes !== undefined && <RecoveryCodes codes={codes} onClose={() => setCodes(undefined)} />}
    </Card>
  )
}

type CodeProps = { onCodes: (codes: string[]) => void; onClose: () => void }

function RecoveryCodes({ codes, onClose }: { codes: string[]; onClose: () => void }) {
  return (
    <InfoDialog title="Recovery codes" action="I have stored them" onClose={onClose}>
      <Secret
        label="Store these codes in a safe place. With one of them you can sign in without the app; each works once."
        text={codes.join('\n')}
      />
    </InfoDialog>
  )
}

function RenewCodes({ onCodes, onClose }: CodeProps) {
  const form = useForm(
    'renewRecoveryCodes',
    { password: '' },
    {
      onDone: ({ recovery_codes }) => {
        onClose()
        onCodes(recovery_codes)
      },
    },
  )
  return (
    <FormDialog title="New recovery codes" action="Create" form={form} onClose={onClose}>
      <p className="text-soft">The codes that you have now stop working.</p>
      <TextField label="Your password" type="password" autoComplete="current-password" {...form.text('password')} />
    </FormDialog>
  )
}

type TotpSecret = { secret: string; uri: string }

function StartTotp({ onStarted, onClose }: { onStarted: (secret: TotpSecret) => void; onClose: () => void }) {
  const form = useForm(
    'startTotp',
    { password: '' },
    {
      onDone: (secret) => {
        onClose()
        onStarted(secret)
      },
    },
  )
  return (
    <FormDialog title="Set up your authenticator app" action="Continue" form={form} onClose={onClose}>
      <TextField label="Your password" type="password" autoComplete="current-password" {...form.text('password')} />
    </FormDialog>
  )
}

function ConfirmTotp({ secret, uri, onCodes, onClose }: CodeProps & TotpSecret) {
  const form = useForm(
    'confirmTotp',
    { code: '' },
    {
      onDone: ({ recovery_codes }) => {
        onClose()
        onCodes(recovery_codes)
      },
    },
  )
  return (
    <FormDialog title="Set up your authenticator app" action="Turn on" form={form} onClose={onClose}>
      <Secret label="Enter this key in the app, or open the address below on your phone." text={secret} />
      <Secret label="Address" text={uri} />
      <TextField
        label="Code that the app shows"
        inputMode="numeric"
        autoComplete="one-time-code"
        {...form.text('code')}
      />
    </FormDialog>
  )
}

function RemoveTotp({ onClose }: { onClose: () => void }) {
  const form = useForm('removeTotp', { password: '' }, { onDone: onClose })
  return (
    <FormDialog title="Remove the authenticator app" action="Remove" isDangerous form={form} onClose={onClose}>
      <TextField label="Your password" type="password" autoComplete="current-password" {...form.text('password')} />
    </FormDialog>
  )
}

function SessionsCard() {
  const sessions = useRead('listSessions')
  const signOut = useSignOut('signOutEverywhere')
  const [isConfirming, setConfirming] = useState(false)
  return (
    <Card title="Sessions" actions={<Button onClick={() => setConfirming(true)}>Sign out everywhere</Button>}>
      <Loaded query={sessions}>
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
                    {is_this && <Badge tone="brand">this session</Badge>}
                  </span>
                ),
              },
              { title: 'Address', cell: ({ address }) => <code className="font-mono text-xs">{address}</code> },
              { title: 'Last seen', cell: ({ last_seen_at }) => toAge(last_seen_at) },
            ]}
          />
        )}
      </Loaded>
      {isConfirming && (
        <Confirm
          title="Sign out everywhere"
          action="Sign out"
          mutation={signOut}
          onConfirm={() => signOut.mutate()}
          onClose={() => setConfirming(false)}
        >
          This ends all your sessions, including this one. API keys keep working.
        </Confirm>
      )}
    </Card>
  )
}

/** Describes a user agent, such as “Chrome on Linux”. Agents that are not browsers keep their own name. */
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
