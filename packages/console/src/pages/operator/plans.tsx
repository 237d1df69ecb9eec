import { useState } from 'react'
import { useChange, useRead } from '../../api/hooks.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { Empty, Reading } from '../../ui/feedback.tsx'
import { isUnlimited, toNumber } from '../../ui/format.ts'
import { Long } from '../../ui/long.tsx'
import { Page } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { EditPlan, type Plan } from './edit-plan.tsx'

const blank: Plan = { name: '', credits_per_period: 1000, rate: '60/1m' }

export function PlansPage() {
  const plans = useRead('listPlans')
  const [edited, setEdited] = useState<Plan>()
  const [doomed, setDoomed] = useState<string>()
  const remove = useChange('deletePlan', { onDone: () => setDoomed(undefined) })
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
      <Reading of={plans}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No plans">
              A plan says how many credits an account has in a period, and how fast it may ask.
            </Empty>
          ) : (
            <Table
              caption="Plans"
              rows={rows}
              keyOf={({ name }) => name}
              columns={[
                {
                  title: 'Name',
                  cell: ({ name }) => (
                    <Long>
                      <span className="font-medium">{name}</span>
                    </Long>
                  ),
                },
                {
                  title: 'Credits per period',
                  isNumber: true,
                  cell: ({ credits_per_period: credits }) => (isUnlimited(credits) ? 'no limit' : toNumber(credits)),
                },
                { title: 'Rate', cell: ({ rate }) => <code className="font-mono text-xs">{rate}</code> },
                { title: 'Accounts', isNumber: true, cell: ({ accounts }) => toNumber(accounts) },
                {
                  title: 'Actions',
                  isActions: true,
                  cell: (plan) => (
                    <span className="inline-flex gap-2">
                      {plan.accounts === 0 && (
                        <Button isSmall aria-label={`Delete ${plan.name}`} onClick={() => setDoomed(plan.name)}>
                          Delete
                        </Button>
                      )}
                      <Button isSmall aria-label={`Change ${plan.name}`} onClick={() => setEdited(plan)}>
                        Change
                      </Button>
                    </span>
                  ),
                },
              ]}
            />
          )
        }
      </Reading>
      {edited !== undefined && (
        <EditPlan
          plan={edited}
          taken={plans.data?.map(({ name }) => name) ?? []}
          onClose={() => setEdited(undefined)}
        />
      )}
      {doomed !== undefined && (
        <Confirm
          title={`Delete ${doomed}`}
          action="Delete"
          of={remove}
          onConfirm={() => remove.mutate({ params: { name: doomed } })}
          onClose={() => setDoomed(undefined)}
        >
          No account is on it. New ones can no longer choose it.
        </Confirm>
      )}
    </Page>
  )
}
