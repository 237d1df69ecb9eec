import { Badge } from './badge.tsx'
import { toAge } from './format.ts'
import type { Column } from './table.tsx'

type Person = { has_totp: boolean; last_seen_at: string | null }

/** The columns about sign-ins, the same for the members of an account and for operators. */
export const personColumns: Column<Person>[] = [
  {
    title: 'Authenticator app',
    cell: ({ has_totp }) => <Badge tone={has_totp ? 'clean' : 'plain'}>{has_totp ? 'on' : 'off'}</Badge>,
    isExtra: true,
  },
  {
    title: 'Last seen',
    cell: ({ last_seen_at }) => (last_seen_at === null ? 'Never' : toAge(last_seen_at)),
    isExtra: true,
  },
]
