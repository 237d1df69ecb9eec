import type { Operator } from '@assay/contract/admin'
import { useState } from 'react'
import { useChange, useRead, useSession } from '../../api/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { ExportLinks } from '../../ui/export-links.tsx'
import { Page } from '../../ui/page.tsx'
import { personColumns } from '../../ui/person-columns.tsx'
import { ErrorMessage, Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Day } from '../../ui/time.tsx'

type Removal = { action: 'suspend' | 'remove'; operator: Operator }

export function OperatorsPage() {
  const operators = useRead('listOperators')
  const session = useSession()
  const resume = useChange('suspendOperator')
  const [removal, setRemoval] = useState<Removal>()
  return (
    <Page
      title="Operators"
      about="Operators manage the service. To add one, run on the server: npm run assay -- operators invite"
      actions={<ExportLinks list="listOperators" />}
    >
      <ErrorMessage error={resume.error} />
      <Loaded query={operators}>
        {(rows) => (
          <Table
            caption="Operators"
            rows={rows}
            keyOf={({ id }) => id}
            columns={[
              { title: 'Name', cell: (operator) => <Name {...operator} /> },
              {
                title: 'State',
                cell: ({ suspended_at }) => (
                  <Badge tone={suspended_at === null ? 'clean' : 'threat'}>
                    {suspended_at === null ? 'active' : 'suspended'}
                  </Badge>
                ),
              },
              ...personColumns,
              { title: 'Created', cell: ({ created_at }) => <Day at={created_at} />, isExtra: true },
              {
                title: 'Actions',
                isActions: true,
                cell: (operator) =>
                  operator.id === session.data?.member.id ? (
                    <Badge tone="brand">you</Badge>
                  ) : (
                    <span className="flex gap-2">
                      {operator.suspended_at === null ? (
                        <Button
                          isSmall
                          aria-label={`Suspend ${operator.name}`}
                          onClick={() => setRemoval({ action: 'suspend', operator })}
                        >
                          Suspend
                        </Button>
                      ) : (
                        <Button
                          isSmall
                          aria-label={`Resume ${operator.name}`}
                          onClick={() => resume.mutate({ params: { id: operator.id }, body: { suspended: false } })}
                        >
                          Resume
                        </Button>
                      )}
                      <Button
                        isSmall
                        aria-label={`Remove ${operator.name}`}
                        onClick={() => setRemoval({ action: 'remove', operator })}
                      >
                        Remove
                      </Button>
                    </span>
                  ),
              },
            ]}
          />
        )}
      </Loaded>
      {removal !== undefined && <RemovalDialog {...removal} onClose={() => setRemoval(undefined)} />}
    </Page>
  )
}

function Name({ name, email }: Operator) {
  return (
    <span className="flex flex-col">
      <span className="max-w-60 truncate font-medium">{name}</span>
      <span className="max-w-60 truncate text-xs text-soft">{email}</span>
    </span>
  )
}

function RemovalDialog({ action, operator, onClose }: Removal & { onClose: () => void }) {
  const suspend = useChange('suspendOperator', { onDone: onClose })
  const remove = useChange('removeOperator', { onDone: onClose })
  const params = { id: operator.id }
  if (action === 'suspend') {
    return (
      <Confirm
        title={`Suspend ${operator.name}`}
        action="Suspend"
        mutation={suspend}
        onConfirm={() => suspend.mutate({ params, body: { suspended: true } })}
        onClose={onClose}
      >
        This ends the sessions of {operator.email}, who cannot sign in until you resume the operator.
      </Confirm>
    )
  }
  return (
    <Confirm
      title={`Remove ${operator.name}`}
      action="Remove"
      mutation={remove}
      onConfirm={() => remove.mutate({ params })}
      onClose={onClose}
    >
      This removes {operator.email} from the console, also as a member of accounts. API keys keep working.
    </Confirm>
  )
}
