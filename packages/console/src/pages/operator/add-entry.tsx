import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { Actions, Dialog } from '../../ui/dialog.tsx'
import { Failure } from '../../ui/feedback.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'

export function AddEntry({ onClose }: { onClose: () => void }) {
  const form = useForm('addListEntry', { list: 'allow', matches: 'sha256', value: '', reason: '' }, { onDone: onClose })
  const isHash = form.values.matches === 'sha256'
  return (
    <Dialog title="New entry" onClose={onClose}>
      <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
        <div className="grid gap-4 sm:grid-cols-2">
          <SelectField
            label="List"
            value={form.values.list}
            options={[
              ['allow', 'Allow: not a threat'],
              ['block', 'Block: a threat'],
            ]}
            onText={(list) => form.set({ list: list as 'allow' | 'block' })}
          />
          <SelectField
            label="By"
            value={form.values.matches}
            options={[
              ['sha256', 'The hash of the file'],
              ['signal', 'The signal of the result'],
            ]}
            onText={(matches) => form.set({ matches: matches as 'sha256' | 'signal' })}
          />
        </div>
        <TextField
          label={isHash ? 'SHA-256' : 'Signal'}
          hint={isHash ? '64 hex digits, as results show them.' : 'Such as Virus:Eicar-Test-Signature.'}
          autoComplete="off"
          spellCheck={false}
          value={form.values.value}
          error={form.errorOf('value')}
          onText={(value) => form.set({ value: value.trim() })}
        />
        <TextField
          label="Why"
          hint="For those who read this list later."
          autoComplete="off"
          value={form.values.reason}
          error={form.errorOf('reason')}
          onText={(reason) => form.set({ reason })}
        />
        <TextField
          label="Until"
          hint="Empty: for good."
          type="date"
          value={form.values.expires_at?.slice(0, 10) ?? ''}
          error={form.errorOf('expires_at')}
          onText={(day) => form.set({ expires_at: day === '' ? null : `${day}T23:59:59Z` })}
        />
        <Failure error={form.error} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="main" isBusy={form.isBusy}>
            Add
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}
