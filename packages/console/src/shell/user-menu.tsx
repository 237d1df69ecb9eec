import type { Session } from '@assay/contract/admin'
import { Link } from '@tanstack/react-router'
import { useSignOut } from '../api/use-sign-out.ts'
import { Button } from '../ui/button.tsx'
import { Failure } from '../ui/feedback.tsx'

export function UserMenu({ session }: { session: Session }) {
  const signOut = useSignOut('signOut')
  return (
    <div className="flex flex-col gap-2">
      <div className="flex items-center justify-between gap-1">
        <Link
          to="/you"
          title={session.member.email}
          className="min-w-0 flex-1 rounded-lg px-2 py-1 leading-5 hover:bg-sunk"
          activeProps={{ className: 'bg-brand-soft', 'aria-current': 'page' }}
        >
          <span className="block truncate font-medium">{session.member.name}</span>
          <span className="block truncate text-xs text-soft">{session.member.email}</span>
        </Link>
        <Button look="quiet" isSmall onClick={() => signOut.mutate()} isBusy={signOut.isPending}>
          Sign out
        </Button>
      </div>
      <Failure error={signOut.error} />
    </div>
  )
}
