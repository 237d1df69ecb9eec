import { get, post, put, remove } from './route.ts'
import * as session from './session.ts'

/** Signing in, and what belongs to the person. */
export const sessionRoutes = {
  findLink: get('/links/{token}', 'anyone', 'What a one-time link is for', { answer: session.Link }),
  acceptLink: post('/links/{token}', 'anyone', 'Set up the member that a one-time link is for', {
    body: session.AcceptLink,
    answer: session.SignedIn,
  }),
  signIn: post('/session', 'anyone', 'Sign in', { body: session.SignIn, answer: session.SignedIn }),
  getSession: get('/session', 'signed-in', 'Who is signed in', { answer: session.Session }),
  signOut: remove('/session', 'signed-in', 'Sign out'),
  listSessions: get('/sessions', 'signed-in', 'Where you are signed in', { answer: session.OpenSessions }),
  signOutEverywhere: remove('/sessions', 'signed-in', 'Sign out everywhere'),
  changePassword: put('/password', 'signed-in', 'Change your password; other sessions end', {
    body: session.ChangePassword,
  }),
  startTotp: post('/totp', 'signed-in', 'Begin with an authenticator app', { answer: session.TotpSecret }),
  confirmTotp: put('/totp', 'signed-in', 'Ask for a code at each sign-in from now on', { body: session.ConfirmTotp }),
  removeTotp: remove('/totp', 'signed-in', 'Stop asking for a code', { body: session.RemoveTotp }),
}
