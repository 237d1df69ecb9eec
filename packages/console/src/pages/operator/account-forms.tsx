import type { AccountView } from '@assay/contract/admin'
import { type ReactNode, useState } from 'react'
import { useRead } from '../../api/hooks.ts'
import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { CheckField, EndDateField, SelectField, TextField } from '../../ui/field.tsx'
import { toNumber } from '../../ui/format.ts'
import { NumberField } from '../../ui/number-field.tsx'
import { ErrorMessage } from '../../ui/states.tsx'

export function PlanForm({ account }: { account: AccountView }) {
  const plans = useRead('listPlans')
  const [message, setMessage] = useState('')
  const { name, plan, flags_sexy, expires_at } = account
  const form = useForm(
    'updateAccount',
    { name, plan, flags_sexy, expires_at },
    { params: { id: account.id }, onDone: () => setMessage('Saved.') },
  )
  return (
    <Section title="Name and plan">
      <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
        <TextField label="Name" autoComplete="off" {...form.text('name')} />
        <div className="grid gap-4 sm:grid-cols-2">
          <SelectField
            label="Plan"
            hint="A new plan applies immediately."
            options={(plans.data ?? [{ name: plan }]).map(({ name }) => [name, name])}
            {...form.text('plan')}
          />
          <EndDateField label="Expires" hint="Leave empty for no expiry." {...form.endDate('expires_at')} />
        </div>
        <CheckField
          label="Treat suggestive images as threats"
          isOn={form.values.flags_sexy ?? false}
          onChange={(flags_sexy) => form.set({ flags_sexy })}
        />
        <ErrorMessage error={form.error} />
        <SubmitRow message={message} isBusy={form.isBusy}>
          <Button type="submit" isBusy={form.isBusy}>
            Save
          </Button>
        </SubmitRow>
      </form>
    </Section>
  )
}

export function GrantForm({ account }: { account: AccountView }) {
  const [message, setMessage] = useState('')
  const form = useForm(
    'grantCredits',
    { amount: 1000, note: '' },
    {
      params: { id: account.id },
      onDone: ({ credit_remaining }) => {
        setMessage(`Granted. The account has ${toNumber(credit_remaining)} credits left.`)
        form.reset()
      },
    },
  )
  return (
    <Section title="Grant credits">
      <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
        <div className="grid gap-4 sm:grid-cols-[10rem_1fr]">
          <NumberField
            label="Credits"
            hint="For the current period."
            value={form.values.amount}
            error={form.errorOf('amount')}
            onNumber={(amount) => form.set({ amount: amount ?? Number.NaN })}
          />
          <TextField label="Reason" hint="Recorded in the ledger." autoComplete="off" {...form.text('note')} />
        </div>
        <ErrorMessage error={form.error} />
        <SubmitRow message={message} isBusy={form.isBusy}>
          <Button type="submit" variant="primary" isBusy={form.isBusy}>
            Grant
          </Button>
        </SubmitRow>
      </form>
    </Section>
  )
}

export function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="flex flex-col gap-4 border-t border-line pt-5">
      <h3 className="font-semibold">{title}</h3>
      {children}
    </section>
  )
}

/** A submit button with the message of the last success. */
function SubmitRow({ message, isBusy, children }: { message: string; isBusy: boolean; children: ReactNode }) {
  return (
    <div className="flex flex-wrap items-center gap-3">
      {children}
      <span role="status" className="text-soft">
        {isBusy ? '' : message}
      </span>
    </div>
  )
}
