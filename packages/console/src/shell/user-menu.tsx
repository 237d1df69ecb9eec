import type { Session } from '@assay/contract/admin'
import { useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { call } from '../api/call.ts'
import { Button } from '../ui/button.tsx'

export function UserMenu({ session }: { session: Session }) {
  const client = useQueryClient()
  const navigate = useNavigate()
  const signOut = async () => {
    await call('signOut')
    client.clear()
    await navigate({ to: '/sign-in' })
  }
  return (
    <div className="flex items-center justify-between gap-2 border-t border-line pt-3">
      <Link to="/you" className="min-w-0 rounded-lg px-2 py-1 hover:bg-sunk">
        <span className="block truncate font-medium">{session.member.name}</span>
        <span className="block truncate text-xs text-faint">{session.member.email}</span>
      </Link>
      <Button look="quiet" onClick={signOut}>
        Sign out
      </Button>
    </div>
  )
}
