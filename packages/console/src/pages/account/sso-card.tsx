import { useState } from 'react'
import { useRead } from '../../api/hooks.ts'
import { useForm } from '../../api/use-form.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Card } from '../../ui/page.tsx'

/** Connects the person to themselves at the issuer of single sign-on. Hidden where there is no issuer. */
export function SsoCard({ isLinked }: { isLinked: boolean }) {
  const sso = useRead('getSso')
  const [isOpen, setOpen] = useState(false)
  const state = sso.data?.state ?? 'off'
  if (state === 'off') return null
  const close = () => setOpen(false)
  return (
    <Card
      title="Single sign-on"
      actions={<Badge tone={isLinked ? 'clean' : 'plain'}>{isLinked ? 'connected' : 'not connected'}</Badge>}
    >
      <p className="mb-4 text-soft">
        {isLinked
          ? 'You can sign in with the provider of your organisation, which then asks for no code of your authenticator app here.'
          : 'Connect yourself to the provider of your organisation to sign in without the password of this service.'}
      </p>
      <Button onClick={() => setOpen(true)} disabled={!isLinked && state !== 'available'}>
        {isLinked ? 'Disconnect' : 'Connect'}
      </Button>
      {!isLinked && state === 'unreachable' && (
        <p role="status" className="mt-3 text-error">
          The provider does not answer at the moment.
        </p>
      )}
      {isOpen &&
        (isLinked ? (
          <Disconnect isRequired={sso.data?.is_required === true} onClose={close} />
        ) : (
          <Connect onClose={close} />
        ))}
    </Card>
  )
}

const noPassword = 'If you have none, ask an operator of this service for a link to set one.'

function Connect({ onClose }: { onClose: () => void }) {
  const form = useForm('linkSso', { password: '' }, { onDone: ({ url }) => location.assign(url) })
  return (
    <FormDialog title="Connect single sign-on" action="Continue" form={form} onClose={onClose}>
      <p className="text-soft">You continue on the page of the provider, and come back here.</p>
      <TextField label="Your password" type="password" autoComplete="current-password" {...form.text('password')} />
    </FormDialog>
  )
}

function Disconnect({ isRequired, onClose }: { isRequired: boolean; onClose: () => void }) {
  const form = useForm('unlinkSso', { password: '' }, { onDone: onClose })
  return (
    <FormDialog title="Disconnect single sign-on" action="Disconnect" isDangerous form={form} onClose={onClose}>
      <p className="text-soft">
        {isRequired
          ? 'This service accepts no other sign-in: once you are signed out, you can come back only if it lets the provider connect you again. Roles that the provider gave you end.'
          : 'You sign in with your password from now on. Roles that the provider gave you end.'}
      </p>
      <TextField
        label="Your password"
        type="password"
        autoComplete="current-password"
        hint={noPassword}
        {...form.text('password')}
      />
    </FormDialog>
  )
}
