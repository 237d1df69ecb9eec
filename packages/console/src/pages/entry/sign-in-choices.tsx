import type { ReactNode } from 'react'
import { useRead } from '../../api/hooks.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorMessage } from '../../ui/states.tsx'
import { SignInForm } from './sign-in-form.tsx'

const retryMs = 10_000

type Start = { mutate: () => void; isPending: boolean; error: Error | null }

/** The ways to sign in: single sign-on where the operator has set it up, and the password unless it is refused. */
export function SignInChoices({
  email,
  sso,
  onSignedIn,
  children,
}: {
  email?: string
  sso: Start
  onSignedIn: () => Promise<void>
  /** Shown below the form for the password. */
  children?: ReactNode
}) {
  const { data, error } = useRead('getSso', {}, { liveMs: (known) => known?.state === 'unreachable' && retryMs })
  const state = data?.state ?? 'off'
  // A form that is not accepted must not appear even for a moment.
  if (data === undefined && error === null) return null
  const isRequired = data?.is_required === true
  return (
    <div className="flex flex-col gap-4">
      {state === 'available' && (
        <>
          <Button variant="primary" onClick={() => sso.mutate()} isBusy={sso.isPending}>
            Sign in with single sign-on
          </Button>
          <ErrorMessage error={sso.error} />
        </>
      )}
      {state === 'unreachable' && (
        <p role="status" className="rounded-lg bg-error-soft px-4 py-3 text-error">
          Single sign-on is not available at the moment: the provider does not answer.{' '}
          {isRequired
            ? 'This page tries again by itself. If it takes long, ask an operator of this service.'
            : 'You can sign in with your password, if you have one.'}
        </p>
      )}
      {state === 'available' && !isRequired && (
        <p className="flex items-center gap-3 text-faint before:h-px before:flex-1 before:bg-line after:h-px after:flex-1 after:bg-line">
          or with your password
        </p>
      )}
      {!isRequired && (
        <>
          <SignInForm
            {...(email === undefined ? {} : { email })}
            isPrimary={state !== 'available'}
            onSignedIn={onSignedIn}
          />
          {children}
        </>
      )}
    </div>
  )
}
