import type { KeyRow } from '@assay/contract/admin'
import { useState } from 'react'
import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { Actions, Dialog } from '../../ui/dialog.tsx'
import { Failure } from '../../ui/feedback.tsx'
import { SelectField } from '../../ui/field.tsx'
import { NewKeyShown } from './keys-shown.tsx'

const overlaps: [string, string][] = [
  ['0', 'It stops at once'],
  ['1', 'An hour'],
  ['24', 'A day'],
  ['168', 'A week'],
  ['720', '30 days'],
]

/** A new key in place of an old one, which works a while longer so that nothing stops. */
export function RotateKey({ apiKey, onClose }: { apiKey: KeyRow; onClose: () => void }) {
  const [made, setMade] = useState<string>()
  const form = useForm(
    'rotateKey',
    { overlap_hours: 24 },
    { params: { id: apiKey.id }, onDone: (answer) => setMade(answer.api_key) },
  )
  if (made !== undefined)
    return <NewKeyShown apiKey={made} about={toAbout(form.values.overlap_hours)} onClose={onClose} />
  return (
    <Dialog title={`Rotate ${apiKey.name}`} onClose={onClose}>
      <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
        <p className="text-soft">
          You get a new key of the same name. The old one works a while longer, until your software has the new one.
        </p>
        <SelectField
          label="The old key works for"
          value={String(form.values.overlap_hours)}
          options={overlaps}
          error={form.errorOf('overlap_hours')}
          onText={(hours) => form.set({ overlap_hours: Number(hours) })}
        />
        <Failure error={form.error} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="main" isBusy={form.isBusy}>
            Rotate
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}

const toAbout = (hours: number) =>
  hours === 0 ? 'The old key does not work any more.' : `The old key works until ${toTime(hours)}.`

const toTime = (hours: number) => new Date(Date.now() + hours * 3_600_000).toLocaleString()
