import type { KeyRow } from '@assay/contract/admin'
import { useState } from 'react'
import { useForm } from '../../api/use-form.ts'
import { Code, Secret } from '../../ui/copy.tsx'
import { FormDialog, InfoDialog } from '../../ui/dialog.tsx'
import { CheckField, EndDateField, SelectField, TextField } from '../../ui/field.tsx'
import { RestrictionFields } from './key-restrictions.tsx'

const dayMs = 86_400_000
const hourMs = 3_600_000

const unrestricted = { allow: null, kinds: null, networks: null }

const lifetimes: [string, string][] = [
  ['', 'Never'],
  ['30', 'In 30 days'],
  ['90', 'In 90 days'],
  ['365', 'In 1 year'],
  ['date', 'On a specific date'],
]

export function CreateKey({ onClose }: { onClose: () => void }) {
  const [apiKey, setApiKey] = useState<string>()
  const [lifetime, setLifetime] = useState('')
  const form = useForm(
    'createKey',
    { name: '', expires_at: null, is_test: false, ...unrestricted },
    { onDone: (created) => setApiKey(created.api_key) },
  )
  const selectLifetime = (selected: string) => {
    setLifetime(selected)
    const days = Number(selected)
    form.set({ expires_at: days > 0 ? new Date(Date.now() + days * dayMs).toISOString() : null })
  }
  if (apiKey !== undefined) return <NewKey apiKey={apiKey} onClose={onClose} />
  return (
    <FormDialog title="Create an API key" action="Create" form={form} onClose={onClose}>
      <TextField
        label="Name"
        placeholder="Upload service"
        hint="The application that uses the key. Separate keys are easier to replace."
        {...form.text('name')}
      />
      <SelectField
        label="Expires"
        value={lifetime}
        options={lifetimes}
        error={lifetime === 'date' ? undefined : form.errorOf('expires_at')}
        onText={selectLifetime}
      />
      {lifetime === 'date' && (
        <EndDateField label="Last day" min={new Date().toISOString().slice(0, 10)} {...form.endDate('expires_at')} />
      )}
      <CheckField
        label="Test key: verdicts come from a table, nothing is scanned or charged"
        isOn={form.values.is_test === true}
        onChange={(is_test) => form.set({ is_test })}
      />
      <details>
        <summary className="cursor-pointer font-medium text-soft hover:text-ink">Restrict the key</summary>
        <div className="mt-3 flex flex-col gap-4">
          <RestrictionFields values={{ ...unrestricted, ...form.values }} onChange={form.set} errorOf={form.errorOf} />
        </div>
      </details>
    </FormDialog>
  )
}

const overlaps: [string, string][] = [
  ['0', 'It stops working immediately'],
  ['1', '1 hour'],
  ['24', '1 day'],
  ['168', '7 days'],
  ['720', '30 days'],
]

/** Replaces a key. The old key works for a chosen time, so that applications can be switched without an outage. */
export function RotateKey({ apiKey, onClose }: { apiKey: KeyRow; onClose: () => void }) {
  const [newKey, setNewKey] = useState<string>()
  const form = useForm(
    'rotateKey',
    { overlap_hours: 24 },
    { params: { id: apiKey.id }, onDone: (answer) => setNewKey(answer.api_key) },
  )
  const { overlap_hours: hours } = form.values
  if (newKey !== undefined) return <NewKey apiKey={newKey} note={toOverlapNote(hours)} onClose={onClose} />
  return (
    <FormDialog title={`Rotate ${apiKey.name}`} action="Rotate" form={form} onClose={onClose}>
      <p className="text-soft">
        You get a new key with the same name and restrictions. The old key keeps working while you update your
        applications.
      </p>
      <SelectField
        label="The old key works for"
        value={String(hours)}
        options={overlaps}
        error={form.errorOf('overlap_hours')}
        onText={(hours) => form.set({ overlap_hours: Number(hours) })}
      />
    </FormDialog>
  )
}

const toOverlapNote = (hours: number) =>
  hours === 0
    ? 'The old key no longer works.'
    : `The old key works until ${new Date(Date.now() + hours * hourMs).toLocaleString()}.`

/** Revokes a key after the user has typed its name, because this cannot be undone. */
export function RevokeKey({ apiKey, onClose }: { apiKey: KeyRow; onClose: () => void }) {
  const form = useForm('revokeKey', { name: '' }, { params: { id: apiKey.id }, onDone: onClose })
  return (
    <FormDialog
      title={`Revoke ${apiKey.name}`}
      action="Revoke"
      isDangerous
      canSubmit={form.values.name === apiKey.name}
      form={form}
      onClose={onClose}
    >
      <p className="text-soft">
        The service rejects <code className="font-mono text-xs text-ink">{apiKey.prefix}…</code> immediately. This
        cannot be undone.
      </p>
      <TextField label={`Type “${apiKey.name}” to confirm`} autoComplete="off" {...form.text('name')} />
    </FormDialog>
  )
}

/** Shows a new key, which the service cannot show again. */
function NewKey({ apiKey, note, onClose }: { apiKey: string; note?: string; onClose: () => void }) {
  return (
    <InfoDialog title="Your new API key" action="I have copied it" onClose={onClose}>
      <Secret label="Copy the key now. The service stores only its hash and cannot show it again." text={apiKey} />
      {note !== undefined && <p className="text-soft">{note}</p>}
      <Code label="Test the key" text={`curl -H 'X-API-Key: ${apiKey}' \\\n  ${location.origin}/v1/me`} />
    </InfoDialog>
  )
}
