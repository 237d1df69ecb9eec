import { useQueryClient } from '@tanstack/react-query'
import { useRouter, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { ErrorMessage } from '../../ui/states.tsx'
import { CodeField } from './code-field.tsx'
import { EntryFrame } from './entry-frame.tsx'

export function SignInPage() {
  const client = useQueryClient()
  const router = useRouter()
  const search: { back?: unknown } = useSearch({ strict: false })
  const [needsCode, setNeedsCode] = useState(false)
  const form = useForm(
    'signIn',
    { email: '', password: '' },
    {
      onDone: async ({ state }) => {
        if (state === 'code-needed') return setNeedsCode(true)
        // Drop cached data: another user may have been signed in before.
        client.clear()
        router.history.push(toReturnPath(search.back))
      },
    },
  )
  return (
    <EntryFrame title="Sign in">
      <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
        <TextField label="Email" type="email" autoComplete="username" {...form.text('email')} />
        <TextField label="Password" type="password" autoComplete="current-password" {...form.text('password')} />
        {needsCode && <CodeField {...form.text('code')} />}
        <ErrorMessage error={form.error} />
        <Button type="submit" variant="primary" isBusy={form.isBusy}>
          Sign in
        </Button>
        <p className="border-t border-line pt-4 text-faint">
          Forgot your password? An operator can create a reset link:{' '}
          <code className="font-mono text-xs text-soft">npm run assay -- operators reset &lt;email&gt;</code>
        </p>
      </form>
    </EntryFrame>
  )
}

/** Accepts only paths of the console, because a link from elsewhere can set this parameter. */
const toReturnPath = (back: unknown) => (typeof back === 'string' && back.startsWith('/console/') ? back : '/console/')
