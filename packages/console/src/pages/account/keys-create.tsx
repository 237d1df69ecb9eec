import { useState } from 'react'
import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { Actions, Dialog } from '../../ui/dialog.tsx'
import { Failure } from '../../ui/feedback.tsx'
import { CheckField, SelectField, TextField } from '../../ui/field.tsx'
import { NewKeyShown } from './keys-shown.tsx'

const dayMs = 86_400_000
const lifetimes: [string, string][] = [
  ['', 'Never'],
  ['30', 'In 30 days'],
  ['90', 'In 90 days'],
  ['365', 'In a year'],
  ['date', 'On a day of my choice'],
]

export function CreateKey({ onClose }: { onClose: () => void }) {
  const [apiKey, setApiKey] = useState<string>()
  const [lifetime, setLifetime] = useState('')
  const form = useForm(
    'createKey',
    { name: '', expires_at: null, is_test: false },
    { onDone: (made) => setApiKey(made.api_key) },
  )
  const choose = (chosen: string) => {
    setLifetime(chosen)
    const days = Number(chosen)
    form.set({ expires_at: days > 0 ? new Date(Date.now() + days * dayMs).toISOString() : null })
  }
  if (apiKey !== undefined) return <NewKeyShown apiKey={apiKey} onClose={onClose} />
  return (
    <Dialog title="Create an API key" onClose={onClose}>
      <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
        <TextField
          label="Name"
          placeholder="Upload service"
          hint="What uses it; one key for each makes it easy to replace."
          value={form.values.name}
          error={form.errorOf('name')}
          onText={(name) => form.set({ name })}
        />
        <SelectField
          label="Expires"
          value={lifetime}
          options={lifetimes}
          error={lifetime === 'date' ? undefined : form.errorOf('expires_at')}
          onText={choose}
        />
        {lifetime === 'date' && (
          <TextField
            label="Last day"
            type="date"
            min={new Date().toISOString().slice(0, 10)}
            error={form.errorOf('expires_at')}
            onText={(day) => form.set({ expires_at: day === '' ? null : `${day}T23:59:59.000Z` })}
          />
        )}
        <CheckField
          label="For tests: answers from a table, nothing is scanned or charged"
          isOn={form.values.is_test === true}
          onChange={(isTest) => form.set({ is_test: isTest })}
        />
        <Failure error={form.error} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="main" isBusy={form.isBusy}>
            Create
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}
