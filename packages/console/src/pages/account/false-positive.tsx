import type { ScanResult } from '@assay/contract'
import { useState } from 'react'
import { useSession } from '../../api/hooks.ts'
import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { Choice } from '../../ui/choice.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Notice } from '../../ui/states.tsx'

/** Lets operators allow a false positive for all accounts. */
export function FalsePositive({ result, onRescan }: { result: ScanResult; onRescan?: () => void }) {
  const session = useSession()
  const [isOpen, setOpen] = useState(false)
  const [isAllowed, setAllowed] = useState(false)
  if (session.data?.member.role !== 'operator') return null
  if (isAllowed) {
    return (
      <Notice>
        <span className="flex flex-wrap items-center justify-between gap-3">
          <span role="status">Allowed. The next scan of this content is clean.</span>
          {onRescan !== undefined && <Button onClick={onRescan}>Scan again</Button>}
        </span>
      </Notice>
    )
  }
  return (
    <div>
      <Button onClick={() => setOpen(true)}>False positive: allow</Button>
      {isOpen && (
        <AllowDialog
          result={result}
          onClose={() => setOpen(false)}
          onDone={() => {
            setOpen(false)
            setAllowed(true)
          }}
        />
      )}
    </div>
  )
}

function AllowDialog({ result, onClose, onDone }: { result: ScanResult; onClose: () => void; onDone: () => void }) {
  const sha256 = result.metadata?.hash_sha256
  const [signal] = result.signals ?? []
  const form = useForm(
    'addListEntry',
    {
      list: 'allow',
      matches: sha256 === undefined ? 'signal' : 'sha256',
      value: sha256 ?? signal ?? '',
      reason: `False positive: ${result.content_name ?? result.id}`.slice(0, 500),
    },
    { onDone },
  )
  return (
    <FormDialog title="Allow a false positive" action="Allow" form={form} onClose={onClose}>
      <Choice
        label="Allow"
        value={form.values.matches}
        onChange={(matches) => form.set({ matches, value: (matches === 'sha256' ? sha256 : signal) ?? '' })}
        options={[
          ...(sha256 === undefined
            ? []
            : [{ value: 'sha256' as const, label: 'This file', about: 'Matches its SHA-256' }]),
          ...(signal === undefined
            ? []
            : [{ value: 'signal' as const, label: 'This signal', about: 'Matches in any file' }]),
        ]}
      />
      <code className="rounded-lg bg-sunk px-3 py-2 font-mono text-xs break-all">{form.values.value}</code>
      <TextField
        label="Reason"
        hint="Recorded in the audit log."
        {...form.text('reason')}
        error={form.errorOf('reason') ?? form.errorOf('value')}
      />
    </FormDialog>
  )
}
