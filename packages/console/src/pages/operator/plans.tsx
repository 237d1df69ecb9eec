import { useState } from 'react'
import { useChange, useRead } from '../../api/hooks.ts'
import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { Actions, Dialog } from '../../ui/dialog.tsx'
import { Failure, Reading } from '../../ui/feedback.tsx'
import { TextField } from '../../ui/field.tsx'
import { toNumber } from '../../ui/format.ts'
import { Page } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'

type Plan = { name: string; credits_per_period: number; rate: string }
const blank: Plan = { name: '', credits_per_period: 1000, rate: '60/1m' }

export function PlansPage() {
  const plans = useRead('listPlans')
  const remove = useChange('deletePlan')
  const [edited, setEdited] = useState<Plan>()
  const create = (
    <Button look="main" onClick={() => setEdited(blank)}>
      New plan
    </Button>
  )
  return (
    <Page
      title="Plans"
      about="A changed rate counts at once, changed credits from each account’s next period."
      actions={create}
    >
      <Failure error={remove.error} />
      <Reading of={plans}>
        {(rows) => (
          <Table
            caption="Plans"
            rows={rows}
            keyOf={({ name }) => name}
            columns={[
              { title: 'Name', cell: ({ name }) => <span className="font-medium">{name}</span> },
              { title: 'Credits per period', isNumber: true, cell: (plan) => toNumber(plan.credits_per_period) },
              { title: 'Rate', cell: ({ rate }) => <code className="font-mono text-xs">{rate}</code> },
              { title: 'Accounts', isNumber: true, cell: ({ accounts }) => toNumber(accounts) },
              {
                title: 'Actions',
                cell: (plan) => (
                  <span className="flex flex-wrap gap-1">
                    <Button look="quiet" aria-label={`Change ${plan.name}`} onClick={() => setEdited(plan)}>
                      Change
                    </Button>
                    {plan.accounts === 0 && (
                      <Button
                        look="quiet"
                        aria-label={`Delete ${plan.name}`}
                        onClick={() => remove.mutate({ params: { name: plan.name } })}
                      >
                        Delete
                      </Button>
                    )}
                  </span>
                ),
              },
            ]}
          />
        )}
      </Reading>
      {edited !== undefined && <EditPlan plan={edited} onClose={() => setEdited(undefined)} />}
    </Page>
  )
}

function EditPlan({ plan, onClose }: { plan: Plan; onClose: () => void }) {
  const [name, setName] = useState(plan.name)
  const { credits_per_period, rate } = plan
  const form = useForm('savePlan', { credits_per_period, rate }, { params: { name }, onDone: onClose })
  return (
    <Dialog title={plan.name === '' ? 'New plan' : `Change ${plan.name}`} onClose={onClose}>
      <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
        {plan.name === '' && <TextField label="Name" value={name} error={form.errorOf('name')} onText={setName} />}
        <TextField
          label="Credits per period"
          inputMode="numeric"
          value={form.values.credits_per_period}
          error={form.errorOf('credits_per_period')}
          onText={(text) => form.set({ credits_per_period: Number(text) })}
        />
        <TextField
          label="Rate"
          hint="Requests in a period, such as 600/1m."
          value={form.values.rate}
          error={form.errorOf('rate')}
          onText={(text) => form.set({ rate: text })}
        />
        <Failure error={form.error} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="main" isBusy={form.isBusy}>
            Save
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}
