import { useState } from 'react'
import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { Actions, Dialog } from '../../ui/dialog.tsx'
import { Failure } from '../../ui/feedback.tsx'
import { TextField } from '../../ui/field.tsx'

const dayMs = 86_400_000

/** After a receiver was mended: all that it missed, once more. */
export function ReplayFailed({ onClose }: { onClose: () => void }) {
  const [start] = useState(() => new Date(Date.now() - dayMs))
  const [replayed, setReplayed] = useState<number>()
  const form = useForm(
    'replayFailed',
    { since: start.toISOString() },
    { onDone: (answer) => setReplayed(answer.replayed) },
  )
  if (replayed !== undefined) {
    return (
      <Dialog title="Replay failed deliveries" onClose={onClose}>
        <p role="status">
          {replayed === 0
            ? 'There was none that failed since then.'
            : replayed === 1
              ? 'One delivery is sent again.'
              : `${replayed} deliveries are sent again.`}
        </p>
        <Actions>
          <Button look="main" onClick={onClose}>
            Close
          </Button>
        </Actions>
      </Dialog>
    )
  }
  return (
    <Dialog title="Replay failed deliveries" onClose={onClose}>
      <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
        <p className="text-soft">
          Sends again all that were given up or stopped since then, and what waits for a paused receiver.
        </p>
        <TextField
          label="Failed since"
          type="datetime-local"
          defaultValue={toLocal(start)}
          error={form.errorOf('since')}
          onText={(local) => form.set({ since: local === '' ? '' : new Date(local).toISOString() })}
        />
        <Failure error={form.error} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="main" isBusy={form.isBusy}>
            Replay all
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}

/** As the field of the browser has it: the time here, without a zone. */
const toLocal = (date: Date) => new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
