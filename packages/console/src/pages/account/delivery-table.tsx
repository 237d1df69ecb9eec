import type { DeliveryRow } from '@assay/contract/admin'
import { Badge, type Tone } from '../../ui/badge.tsx'
import { RowButton, Table } from '../../ui/table.tsx'
import { Age } from '../../ui/time.tsx'

const states: Record<DeliveryRow['state'], [Tone, string]> = {
  pending: ['pending', '… pending'],
  delivered: ['clean', '✓ delivered'],
  dead: ['threat', '! failed'],
  stopped: ['error', '■ stopped'],
}

export function DeliveryState({ state }: Pick<DeliveryRow, 'state'>) {
  const [tone, label] = states[state]
  return <Badge tone={tone}>{label}</Badge>
}

export function DeliveryTable({ deliveries, onOpen }: { deliveries: DeliveryRow[]; onOpen: (id: string) => void }) {
  return (
    <Table
      caption="Deliveries"
      rows={deliveries}
      keyOf={({ id }) => id}
      onOpen={({ id }) => onOpen(id)}
      columns={[
        { title: 'Receiver', cell: ({ url }) => <RowButton>{url}</RowButton> },
        { title: 'State', cell: (delivery) => <DeliveryState {...delivery} /> },
        { title: 'Response', cell: ({ last_status, attempts }) => last_status ?? (attempts === 0 ? '' : 'None') },
        { title: 'Attempts', cell: ({ attempts }) => attempts, isNumber: true, isExtra: true },
        { title: 'Next attempt', cell: ({ next_at }) => <Age at={next_at} otherwise="" />, isExtra: true },
        {
          title: 'Created',
          cell: ({ created_at }) => (
            <span className="text-soft">
              <Age at={created_at} />
            </span>
          ),
        },
      ]}
    />
  )
}
