import { useQueryClient } from '@tanstack/react-query'
import { useRouter, useSearch } from '@tanstack/react-router'
import { useStartSso } from '../../api/single-sign-on.ts'
import { EntryFrame } from './entry-frame.tsx'
import { SignInChoices } from './sign-in-choices.tsx'

export function SignInPage() {
  const client = useQueryClient()
  const router = useRouter()
  const search: { back?: unknown } = useSearch({ strict: false })
  const sso = useStartSso(toReturnPath(search.back))
  const onSignedIn = async () => {
    // Drop cached data: another user may have been signed in before.
    client.clear()
    router.history.push(toReturnPath(search.back))
  }
  return (
    <EntryFrame title="Sign in">
      <SignInChoices sso={sso} onSignedIn={onSignedIn}>
        <p className="border-t border-line pt-4 text-faint">
          Forgot your password? An operator can create a reset link:{' '}
          <code className="font-mono text-xs text-soft">npm run assay -- operators reset &lt;email&gt;</code>
        </p>
      </SignInChoices>
    </EntryFrame>
  )
}

/** Accepts only paths of the console, because a link from elsewhere can set this parameter. */
const toReturnPath = (back: unknown) => (typeof back === 'string' && back.startsWith('/console/') ? back : '/console/')
