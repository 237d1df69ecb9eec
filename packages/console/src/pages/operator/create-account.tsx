import { useState } from 'react'
import type { Answer } from '../../api/call.ts'
import { useRead } from '../../api/hooks.ts'
import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { Secret } from '../../ui/copy.tsx'
import { Actions, Dialog } from '../../ui/dialog.tsx'
import { Failure } from '../../ui/feedback.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { NumberField } from '../../ui/number-field.tsx'

export function CreateAccount({ onClose }: { onClose: () => void }) {
  const plans = useRead('listPlans')
  const [created, setCreated] = useState<Answer<'createAccount'>>()
  const form = useForm('createAccount', { name: '', plan: 'free' }, { onDone: setCreated })
  if (created !== undefined) return <Created key="created" created={created} onClose={onClose} />
  const names = plans.data?.map(({ name }) => name) ?? ['free']
  return (
    <Dialog title="New account" onClose={onClose}>
      <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
        <TextField
          label="Name"
          hint="Who it is for, such as a company or a team."
          autoComplete="off"
          value={form.values.name}
          error={form.errorOf('name')}
          onText={(name) => form.set({ name })}
        />
        <SelectField
          label="Plan"
          value={form.values.plan}
          error={form.errorOf('plan')}
          options={names.map((name) => [name, name])}
          onText={(plan) => form.set({ plan })}
        />
        <div className="grid gap-4 sm:grid-cols-2">
          <NumberField
            label="Credits per period"
            hint="Empty: those of the plan."
            value={form.values.credits ?? null}
            error={form.errorOf('credits')}
            onNumber={(credits) => form.set({ credits })}
          />
          <TextField
            label="Rate"
            hint="Such as 600/1m. Empty: that of the plan."
            value={form.values.rate ?? ''}
            error={form.errorOf('rate')}
            onText={(text) => form.set({ rate: text === '' ? null : text })}
          />
        </div>
        <Failure error={form.error} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="main" isBusy={form.isBusy}>
            Create
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}

function Created({ created, onClose }: { created: Answer<'createAccount'>; onClose: () => void }) {
  return (
    <Dialog title={`${created.account.name} is ready`} onClose={onClose}>
      <div className="flex flex-col gap-5">
        <Secret label="Send this link to the owner. It works once, for seven days." text={created.invitation_url} />
        <Secret label="The first API key, shown this once." text={created.api_key} />
        <Secret label="The webhook secret. The owner can see it again." text={created.webhook_secret} />
      </div>
      <Actions>
        <Button look="main" onClick={onClose}>
          Done
        </Button>
      </Actions>
    </Dialog>
  )
}
