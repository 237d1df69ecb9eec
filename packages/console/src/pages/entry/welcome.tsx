import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { call } from '../../api/call.ts'
import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { ErrorMessage } from '../../ui/states.tsx'
import { CodeField } from './code-field.tsx'
import { EntryFrame } from './entry-frame.tsx'

/** Accepts a one-time link. Its token is in the fragment, which browsers do not send, so that no log contains it. */
export function WelcomePage() {
  const token = location.hash.slice(1)
  const link = useQuery({
    queryKey: ['findLink', token],
    queryFn: () => call('findLink', { body: { token } }),
    retry: false,
    // Query once: submitting the form consumes the link.
    enabled: ({ state }) => state.data === undefined,
  })
  if (link.error !== null) {
    return (
      <EntryFrame title="This link does not work">
        <ErrorMessage error={link.error} />
        <p className="mt-4">
          <Link to="/sign-in" className="font-medium text-brand hover:underline">
            Sign in
          </Link>
        </p>
      </EntryFrame>
    )
  }
  if (link.data === undefined) return null
  const { purpose, account_name, email, is_member } = link.data
  const texts = {
    'first-operator': ['Welcome to Assay', 'You are the first operator. Choose how to sign in.'],
    invitation: [
      'You are invited',
      account_name === null ? 'Set up your operator access.' : `Join the account ${account_name}.`,
    ],
    'new-password': ['Set a new password', 'This ends your other sessions.'],
  } as const
  const [title, about] = texts[purpose]
  return (
    <EntryFrame title={title} about={about}>
      <WelcomeForm token={token} email={email ?? ''} isReset={purpose === 'new-password'} isMember={is_member} />
    </EntryFrame>
  )
}

type FormProps = { token: string; email: string; isReset: boolean; isMember: boolean }

/** A person who is a member already enters the existing password instead of a new one. */
function WelcomeForm({ token, email, isReset, isMember }: FormProps) {
  const client = useQueryClient()
  const navigate = useNavigate()
  const [needsCode, setNeedsCode] = useState(false)
  const form = useForm(
    'acceptLink',
    { token, name: isReset || isMember ? email : '', email, password: '' },
    {
      onDone: async ({ state }) => {
        // After a reset the password is set; an invitation is accepted only together with the code.
        if (state === 'code-needed') return isReset ? navigate({ to: '/sign-in' }) : setNeedsCode(true)
        await client.resetQueries({ queryKey: ['getSession'] })
        await navigate({ to: '/' })
      },
    },
  )
  return (
    <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
      {!isReset && !isMember && <TextField label="Your name" autoComplete="name" {...form.text('name')} />}
      {!isReset && (
        <TextField label="Email" type="email" autoComplete="username" readOnly={email !== ''} {...form.text('email')} />
      )}
      <TextField
        label={isMember ? 'Your password' : 'Password'}
        type="password"
        autoComplete={isMember ? 'current-password' : 'new-password'}
        hint={isMember ? 'You have a password for this service already.' : 'At least 12 characters.'}
        {...form.text('password')}
      />
      {needsCode && <CodeField {...form.text('code')} />}
      <ErrorMessage error={form.error} />
      <Button type="submit" variant="primary" isBusy={form.isBusy}>
        {isReset ? 'Set password' : 'Start'}
      </Button>
    </form>
  )
}
