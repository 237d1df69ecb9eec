import { useState } from 'react'
import { useChange } from '../../api/hooks.ts'
import { Button } from '../../ui/button.tsx'
import { Actions, Dialog } from '../../ui/dialog.tsx'
import { Failure } from '../../ui/feedback.tsx'
import { SelectField } from '../../ui/field.tsx'
import { toNumber } from '../../ui/format.ts'

const hourMs = 3_600_000
const spans: [hours: string, label: string][] = [
  ['1', 'The last hour'],
  ['24', 'The last 24 hours'],
  ['168', 'The last 7 days'],
  ['720', 'The last 30 days'],
]

/** Everything that failed at a host in a while is sent again. */
export function ReplayHost({
  host,
  onSaid,
  onClose,
}: {
  host: string
  onSaid: (said: string) => void
  onClose: () => void
}) {
  const [hours, setHours] = useState('168')
  const replay = useChange('replayHost', {
    onDone: ({ replayed }) => {
      onSaid(`${host}: ${toWords(replayed)}`)
      onClose()
    },
  })
  const submit = (event: React.FormEvent) => {
    event.preventDefault()
    replay.mutate({ body: { host, since: new Date(Date.now() - Number(hours) * hourMs).toISOString() } })
  }
  return (
    <Dialog title={`Replay ${host}`} onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-4">
        <p className="text-soft">What was given up is sent again. What still waits is tried again by itself.</p>
        <SelectField label="Made in" value={hours} options={spans} onText={setHours} />
        <Failure error={replay.error} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="main" isBusy={replay.isPending}>
            Replay
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}

function toWords(replayed: number): string {
  if (replayed === 0) return 'nothing was given up in that time.'
  return replayed === 1 ? 'one delivery is sent again.' : `${toNumber(replayed)} deliveries are sent again.`
}
