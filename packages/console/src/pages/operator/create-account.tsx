import { useState } from 'react'
import type { Answer } from '../../api/call.ts'
import { useRead } from '../../api/hooks.ts'
import { useForm } from '../../api/use-form.ts'
import { Secret } from '../../ui/copy.tsx'
import { FormDialog, InfoDialog } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { NumberField } from '../../ui/number-field.tsx'

export function CreateAccount({ onClose }: { onClose: () => void }) {
  const plans = useRead('listPlans')
  const [created, setCreated] = useState<Answer<'createAccount'>>()
  const form = useForm('createAccount', { name: '', plan: 'free' }, { onDone: setCreated })
  if (created !== undefined) return <Created key="created" created={created} onClose={onClose} />
  const names = plans.data?.map(({ name }) => name) ?? ['free']
  return (
    <FormDialog title="New account" action="Create" form={form} onClose={onClose}>
      <TextField label="Name" hint="For example a company or a team." autoComplete="off" {...form.text('name')} />
      <TextField
        label="Email of the owner (optional)"
        type="email"
        hint="With an address you get an invitation link that works for it only. You can invite owners later."
        error={form.errorOf('owner_email')}
        onText={(email) => form.set({ owner_email: email === '' ? undefined : email } as { owner_email: string })}
      />
      <SelectField label="Plan" options={names.map((name) => [name, name])} {...form.text('plan')} />
      <div className="grid gap-4 sm:grid-cols-2">
        <NumberField
          label="Credits per period"
          hint="Leave empty to use the plan."
          value={form.values.credits ?? null}
          error={form.errorOf('credits')}
          onNumber={(credits) => form.set({ credits })}
        />
        <TextField
          label="Rate limit"
          hint="Such as 600/1m. Leave empty to use the plan."
          {...form.text('rate')}
          onText={(text) => form.set({ rate: text === '' ? null : text })}
        />
      </div>
    </FormDialog>
  )
}

function Created({ created, onClose }: { created: Answer<'createAccount'>; onClose: () => void }) {
  return (
    <InfoDialog title={`${created.account.name} was created`} action="Done" onClose={onClose}>
      {created.invitation_url !== null && (
        <Secret label="Send this link to the owner. It works once, within seven days." text={created.invitation_url} />
      )}
      <Secret label="The first API key. It is not shown again." text={created.api_key} />
      <Secret label="The webhook secret. Members of the account can reveal it later." text={created.webhook_secret} />
    </InfoDialog>
  )
}
