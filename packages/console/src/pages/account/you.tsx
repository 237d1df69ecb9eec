import { useState } from 'react'
import { useSession } from '../../api/hooks.ts'
import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { ErrorMessage } from '../../ui/states.tsx'
import { AuthenticatorCard } from './authenticator.tsx'
import { DevicesCard } from './devices.tsx'
import { SsoCard } from './sso-card.tsx'

export function YouPage() {
  const session = useSession()
  return (
    <Page title="You" about="Your password, authenticator app and devices.">
      <PasswordCard />
      {session.data && (
        <AuthenticatorCard hasTotp={session.data.member.has_totp} codesLeft={session.data.member.recovery_codes_left} />
      )}
      {session.data && <SsoCard isLinked={session.data.member.has_sso} />}
      <DevicesCard />
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
