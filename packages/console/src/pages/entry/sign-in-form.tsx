import { useState } from 'react'
import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { ErrorMessage } from '../../ui/states.tsx'
import { CodeField } from './code-field.tsx'

/** Email address, password and, where it is needed, a code; on the sign-in page and over a page whose session ended. */
export function SignInForm({
  email = '',
  isPrimary,
  onSignedIn,
}: {
  email?: string
  /** Whether this is the only way to sign in now. */
  isPrimary: boolean
  onSignedIn: () => Promise<void>
}) {
  const [needsCode, setNeedsCode] = useState(false)
  const form = useForm(
    'signIn',
    { email, password: '' },
    { onDone: async ({ state }) => (state === 'code-needed' ? setNeedsCode(true) : onSignedIn()) },
  )
  return (
    <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
      <TextField label="Email" type="email" autoComplete="username" {...form.text('email')} />
      <TextField
        label="Password"
        type="password"
        autoComplete="current-password"
        data-focus
        autoFocus={email !== ''}
        {...form.text('password')}
      />
      {needsCode && <CodeField {...form.text('code')} />}
      <ErrorMessage error={form.error} />
      <Button type="submit" variant={isPrimary ? 'primary' : 'secondary'} isBusy={form.isBusy}>
        Sign in
      </Button>
    </form>
  )
}
