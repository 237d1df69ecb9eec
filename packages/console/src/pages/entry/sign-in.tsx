import { useQueryClient } from '@tanstack/react-query'
import { useRouter, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { Failure } from '../../ui/feedback.tsx'
import { TextField } from '../../ui/field.tsx'
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
        // Nothing that somebody else may have read here is shown to who comes now.
        client.clear()
        router.history.push(toWayBack(search.back))
      },
    },
  )
  return (
    <EntryFrame title="Sign in">
      <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
        <TextField
          label="Email"
          type="email"
          autoComplete="username"
          value={form.values.email}
          error={form.errorOf('email')}
          onText={(email) => form.set({ email })}
        />
        <TextField
          label="Password"
          type="password"
          autoComplete="current-password"
          value={form.values.password}
          error={form.errorOf('password')}
          onText={(password) => form.set({ password })}
        />
        {needsCode && (
          <TextField
            label="Code of your authenticator app"
            inputMode="numeric"
            autoComplete="one-time-code"
            autoFocus
            value={form.values.code ?? ''}
            error={form.errorOf('code')}
            onText={(code) => form.set({ code })}
          />
        )}
        <Failure error={form.error} />
        <Button type="submit" look="main" isBusy={form.isBusy}>
          Sign in
        </Button>
        <p className="border-t border-line pt-4 text-faint">
          Password forgotten? Whoever runs this service makes a new link:{' '}
          <code className="font-mono text-xs text-soft">npm run assay -- operators reset &lt;email&gt;</code>
        </p>
      </form>
    </EntryFrame>
  )
}

/** Only to a page of the console: the address may come from anywhere. */
const toWayBack = (back: unknown) => (typeof back === 'string' && back.startsWith('/console/') ? back : '/console/')
