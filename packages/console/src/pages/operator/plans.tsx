import { requiredMessage } from '@assay/contract/check-form'
import { type FormEvent, useState } from 'react'
import type { Answer } from '../../api/call.ts'
import { useChange, useRead } from '../../api/hooks.ts'
import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { ExportLinks } from '../../ui/export-links.tsx'
import { TextField } from '../../ui/field.tsx'
import { isUnlimited, noLimit, toNumber, toRate } from '../../ui/format.ts'
import { LongText } from '../../ui/long-text.tsx'
import { NumberField } from '../../ui/number-field.tsx'
import { Page } from '../../ui/page.tsx'
import { Empty, Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'

type Plan = Pick<Answer<'listPlans'>[number], 'name' | 'credits_per_period' | 'rate' | 'account_rate' | 'max_keys'>

const newPlan: Plan = { name: '', credits_per_period: 1000, rate: '60/1m', account_rate: null, max_keys: null }

export function PlansPage() {
  const plans = useRead('listPlans')
  const [toEdit, setToEdit] = useState<Plan>()
  const [toDelete, setToDelete] = useState<string>()
  const remove = useChange('deletePlan', { onDone: () => setToDelete(undefined) })
  const create = (
    <Button variant="primary" onClick={() => setToEdit(newPlan)}>
      New plan
    </Button>
  )
  return (
    <Page
      title="Plans"
      about="A new rate limit applies immediately, new credits from the next period of each account."
      actions={
        <>
          <ExportLinks list="listPlans" />
          {create}
        </>
      }
    >
      <Loaded query={plans}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No plans">A plan sets the credits per period and the rate limit of its accounts.</Empty>
          ) : (
            <PlanTable rows={rows} onEdit={setToEdit} onDelete={setToDelete} />
          )
        }
      </Loaded>
      {toEdit !== undefined && (
        <EditPlan
          plan={toEdit}
          usedNames={plans.data?.map(({ name }) => name) ?? []}
          onClose={() => setToEdit(undefined)}
        />
      )}
      {toDelete !== undefined && (
        <Confirm
          title={`Delete ${toDelete}`}
          action="Delete"
          mutation={remove}
          onConfirm={() => remove.mutate({ params: { name: toDelete } })}
          onClose={() => setToDelete(undefined)}
        >
          No account uses this plan. It is no longer available for new accounts.
        </Confirm>
      )}
    </Page>
  )
}

type TableProps = { rows: Answer<'listPlans'>; onEdit: (plan: Plan) => void; onDelete: (name: string) => void }

function PlanTable({ rows, onEdit, onDelete }: TableProps) {
  return (
    <Table
      caption="Plans"
      rows={rows}
      keyOf={({ name }) => name}
      columns={[
        {
          title: 'Name',
          cell: ({ name }) => (
            <LongText>
              <span className="font-medium">{name}</span>
            </LongText>
          ),
        },
        {
          title: 'Credits per period',
          isNumber: true,
          cell: ({ credits_per_period: credits }) => (isUnlimited(credits) ? noLimit : toNumber(credits)),
        },
        { title: 'Rate per key', cell: ({ rate }) => toRate(rate) },
        {
          title: 'Rate per account',
          cell: ({ account_rate }) => (account_rate === null ? noLimit : toRate(account_rate)),
          isExtra: true,
        },
        {
          title: 'Keys',
          isNumber: true,
          cell: ({ max_keys }) => (max_keys === null ? 'No limit' : toNumber(max_keys)),
          isExtra: true,
        },
        { title: 'Accounts', isNumber: true, cell: ({ accounts }) => toNumber(accounts) },
        {
          title: 'Actions',
          isActions: true,
          cell: (plan) => (
            <span className="inline-flex gap-2">
              {plan.accounts === 0 && (
                <Button isSmall aria-label={`Delete ${plan.name}`} onClick={() => onDelete(plan.name)}>
                  Delete
                </Button>
              )}
              <Button isSmall aria-label={`Edit ${plan.name}`} onClick={() => onEdit(plan)}>
                Edit
              </Button>
            </span>
          ),
        },
      ]}
    />
  )
}

/** Edits a plan, or creates one if its name is empty. The name of a new plan must not be one of `usedNames`. */
function EditPlan({ plan, usedNames, onClose }: { plan: Plan; usedNames: string[]; onClose: () => void }) {
  const isNew = plan.name === ''
  const [name, setName] = useState(plan.name)
  const [nameError, setNameError] = useState<string>()
  const { credits_per_period, rate, account_rate, max_keys } = plan
  const initial = { credits_per_period, rate, account_rate, max_keys }
  const form = useForm('savePlan', initial, { params: { name: name.trim() }, onDone: onClose })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const error = isNew ? checkName(name.trim(), usedNames) : undefined
    setNameError(error)
    if (error === undefined) form.submit(event)
  }
  return (
    <FormDialog
      title={isNew ? 'New plan' : `Edit ${plan.name}`}
      action="Save"
      form={{ ...form, submit }}
      onClose={onClose}
    >
      {isNew && (
        <TextField
          label="Name"
          autoComplete="off"
          value={name}
          error={nameError ?? form.errorOf('name')}
          onText={setName}
        />
      )}
      <NumberField
        label="Credits per period"
        hint="A scan costs one credit. A period is one month."
        value={form.values.credits_per_period}
        error={form.errorOf('credits_per_period')}
        onNumber={(credits) => form.set({ credits_per_period: credits ?? Number.NaN })}
      />
      <TextField
        label="Rate limit of each key"
        hint="Requests per time, such as 600/1m, 10/1s or 50000/1d."
        {...form.text('rate')}
      />
      <TextField
        label="Rate limit of an account (optional)"
        hint="For all keys of an account together."
        {...form.text('account_rate')}
        onText={(text) => form.set({ account_rate: text === '' ? null : text })}
      />
      <NumberField
        label="Keys of an account (optional)"
        hint="Active keys that an account may have."
        value={form.values.max_keys ?? null}
        error={form.errorOf('max_keys')}
        onNumber={(number) => form.set({ max_keys: number })}
      />
    </FormDialog>
  )
}

function checkName(name: string, usedNames: string[]): string | undefined {
  if (name === '') return requiredMessage
  return usedNames.includes(name) ? 'A plan with this name already exists.' : undefined
}
