import { useState } from 'react'
import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { Actions, Dialog } from '../../ui/dialog.tsx'
import { Failure } from '../../ui/feedback.tsx'
import { TextField } from '../../ui/field.tsx'
import { NumberField } from '../../ui/number-field.tsx'

export type Plan = { name: string; credits_per_period: number; rate: string }

/** A plan without a name is a new one; its name must not be `taken`. */
export function EditPlan({ plan, taken, onClose }: { plan: Plan; taken: string[]; onClose: () => void }) {
  const isNew = plan.name === ''
  const [name, setName] = useState(plan.name)
  const [nameError, setNameError] = useState<string>()
  const { credits_per_period, rate } = plan
  const form = useForm('savePlan', { credits_per_period, rate }, { params: { name: name.trim() }, onDone: onClose })
  const submit = (event: React.FormEvent) => {
    event.preventDefault()
    const found = isNew ? checkName(name.trim(), taken) : undefined
    setNameError(found)
    if (found === undefined) form.submit(event)
  }
  return (
    <Dialog title={isNew ? 'New plan' : `Change ${plan.name}`} onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-4" noValidate>
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
          hint="One scan takes one. A period is a month."
          value={form.values.credits_per_period}
          error={form.errorOf('credits_per_period')}
          onNumber={(credits) => form.set({ credits_per_period: credits ?? Number.NaN })}
        />
        <TextField
          label="Rate"
          hint="Requests in a time, such as 600/1m, 10/1s or 50000/1d."
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

function checkName(name: string, taken: string[]): string | undefined {
  if (name === '') return 'This is needed.'
  return taken.includes(name) ? 'There is a plan of this name. Change that one, or choose another name.' : undefined
}
