import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { call } from '../../api/call.ts'
import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { Failure } from '../../ui/feedback.tsx'
import { TextField } from '../../ui/field.tsx'
import { EntryFrame } from './entry-frame.tsx'

/** The token stands behind the #: browsers do not send that part, so no log ever holds it. */
export function WelcomePage() {
  const token = location.hash.slice(1)
  const link = useQuery({
    queryKey: ['findLink', token],
    queryFn: () => call('findLink', { body: { token } }),
    retry: false,
    // Asked once: it is used up as soon as the form is sent.
    enabled: ({ state }) => state.data === undefined,
  })
  if (link.error !== null) {
    return (
      <EntryFrame title="This link does not work">
        <Failure error={link.error} />
        <p className="mt-4">
          <Link to="/sign-in" className="font-medium text-brand hover:underline">
            Sign in
          </Link>
        </p>
      </EntryFrame>
    )
  }
  if (link.data === undefined) return null
  const { purpose, account_name, email } = link.data
  const words = {
    'first-operator': ['Welcome to Assay', 'You are the first operator. Choose how you sign in from now on.'],
    invitation: [
      'You are invited',
      account_name === null ? 'You are to be an operator.' : `To the account ${account_name}.`,
    ],
    'new-password': ['A new password', 'Your other sessions end.'],
  } as const
  const [title, about] = words[purpose]
  return (
    <EntryFrame title={title} about={about}>
      <WelcomeForm token={token} email={email ?? ''} isReset={purpose === 'new-password'} />
    </EntryFrame>
  )
}

function WelcomeForm({ token, email, isReset }: { token: string; email: string; isReset: boolean }) {
  const client = useQueryClient()
  const navigate = useNavigate()
  const form = useForm(
    'acceptLink',
    { token, name: isReset ? email : '', email, password: '' },
    {
      onDone: async ({ state }) => {
        if (state === 'code-needed') return navigate({ to: '/sign-in' })
        await client.resetQueries({ queryKey: ['getSession'] })
        await navigate({ to: '/' })
      },
    },
  )
  return (
    <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
      {!isReset && (
        <>
          <TextField
            label="Your name"
            autoComplete="name"
            value={form.values.name}
            error={form.errorOf('name')}
            onText={(name) => form.set({ name })}
          />
          <TextField
            label="Email"
            type="email"
            autoComplete="username"
            value={form.values.email}
            error={form.errorOf('email')}
            onText={(email) => form.set({ email })}
          />
        </>
      )}
      <TextField
        label="Password"
        type="password"
        autoComplete="new-password"
        hint="At least 12 characters."
        value={form.values.password}
        error={form.errorOf('password')}
        onText={(password) => form.set({ password })}
      />
      <Failure error={form.error} />
      <Button type="submit" look="main" isBusy={form.isBusy}>
        {isReset ? 'Set the password' : 'Start'}
      </Button>
    </form>
  )
}
