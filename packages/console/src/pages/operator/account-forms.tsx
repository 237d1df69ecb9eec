import type { AccountView } from '@assay/contract/admin'
import { type ReactNode, useState } from 'react'
import { useRead } from '../../api/hooks.ts'
import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { Failure } from '../../ui/feedback.tsx'
import { CheckField, SelectField, TextField } from '../../ui/field.tsx'
import { toNumber } from '../../ui/format.ts'
import { NumberField } from '../../ui/number-field.tsx'

export function PlanForm({ account }: { account: AccountView }) {
  const plans = useRead('listPlans')
  const [said, setSaid] = useState('')
  const { name, plan, flags_sexy, expires_at } = account
  const form = useForm(
    'updateAccount',
    { name, plan, flags_sexy, expires_at },
    { params: { id: account.id }, onDone: () => setSaid('Saved.') },
  )
  return (
    <Section title="Name and plan">
      <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
        <TextField
          label="Name"
          autoComplete="off"
          value={form.values.name ?? ''}
          error={form.errorOf('name')}
          onText={(name) => form.set({ name })}
        />
        <div className="grid gap-4 sm:grid-cols-2">
          <SelectField
            label="Plan"
            hint="A new plan counts at once."
            value={form.values.plan ?? ''}
            error={form.errorOf('plan')}
            options={(plans.data ?? [{ name: plan }]).map(({ name }) => [name, name])}
            onText={(plan) => form.set({ plan })}
          />
          <TextField
            label="Ends"
            hint="Empty: never."
            type="date"
            value={form.values.expires_at?.slice(0, 10) ?? ''}
            error={form.errorOf('expires_at')}
            onText={(day) => form.set({ expires_at: day === '' ? null : `${day}T23:59:59Z` })}
          />
        </div>
        <CheckField
          label="Suggestive pictures are a threat, too"
          isOn={form.values.flags_sexy ?? false}
          onChange={(flags_sexy) => form.set({ flags_sexy })}
        />
        <Failure error={form.error} />
        <Done said={said} isBusy={form.isBusy}>
          <Button type="submit" isBusy={form.isBusy}>
            Save
          </Button>
        </Done>
      </form>
    </Section>
  )
}

export function GrantForm({ account }: { account: AccountView }) {
  const [said, setSaid] = useState('')
  const form = useForm(
    'grantCredits',
    { amount: 1000, note: '' },
    {
      params: { id: account.id },
      onDone: ({ credit_remaining }) => {
        setSaid(`Granted: ${toNumber(credit_remaining)} are left now.`)
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
            hint="For this period."
            value={form.values.amount}
            error={form.errorOf('amount')}
            onNumber={(amount) => form.set({ amount: amount ?? Number.NaN })}
          />
          <TextField
            label="Why"
            hint="It stands in the ledger."
            autoComplete="off"
            value={form.values.note}
            error={form.errorOf('note')}
            onText={(note) => form.set({ note })}
          />
        </div>
        <Failure error={form.error} />
        <Done said={said} isBusy={form.isBusy}>
          <Button type="submit" look="main" isBusy={form.isBusy}>
            Grant
          </Button>
        </Done>
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

function Done({ said, isBusy, children }: { said: string; isBusy: boolean; children: ReactNode }) {
  return (
    <div className="flex flex-wrap items-center gap-3">
      {children}
      <span role="status" className="text-soft">
        {isBusy ? '' : said}
      </span>
    </div>
  )
}
