import { get, post, put, remove } from './route.ts'
import * as session from './session.ts'

/** Routes for signing in and for the signed-in person's own password, authenticator app and sessions. */
export const sessionRoutes = {
  findLink: post('/link', 'anyone', 'Show the purpose of a one-time link', {
    body: session.FindLink,
    answer: session.Link,
  }),
  acceptLink: post('/link/accept', 'anyone', 'Accept a one-time link: create the member or set the password', {
    body: session.AcceptLink,
    answer: session.SignedIn,
  }),
  signIn: post('/session', 'anyone', 'Sign in', { body: session.SignIn, answer: session.SignedIn }),
  getSso: get('/sso', 'anyone', 'Show whether single sign-on can be used', { answer: session.SingleSignOn }),
  startSso: post('/sso', 'anyone', 'Begin a single sign-on', { answer: session.IssuerPage }),
  finishSso: post('/sso/finish', 'anyone', 'Finish a single sign-on with the answer of the issuer', {
    body: session.FinishSso,
    answer: session.FinishedSso,
  }),
  linkSso: post('/sso/link', 'signed-in', 'Begin to connect single sign-on to yourself', {
    body: session.ConfirmSso,
    answer: session.IssuerPage,
  }),
  unlinkSso: remove('/sso/link', 'signed-in', 'Disconnect single sign-on, with the roles that came with it', {
    body: session.ConfirmSso,
  }),
  getSession: get('/session', 'signed-in', 'Show the current session', { answer: session.Session }),
  chooseAccount: put('/session/account', 'signed-in', 'Work in another of your accounts', {
    body: session.ChooseAccount,
  }),
  signOut: remove('/session', 'signed-in', 'Sign out'),
  listSessions: get('/sessions', 'signed-in', 'List your sessions', { answer: session.OpenSessions }),
  endSession: remove('/sessions/{id}', 'signed-in', 'End one of your sessions'),
  signOutEverywhere: remove('/sessions', 'signed-in', 'End all your sessions'),
  changePassword: put(
    '/password',
    'signed-in',
    'Change your password; your other sessions end, and this one gets a new cookie',
    {
      body: session.ChangePassword,
    },
  ),
  startTotp: post('/totp', 'signed-in', 'Start setting up an authenticator app', {
    body: session.StartTotp,
    answer: session.TotpSecret,
  }),
  confirmTotp: put('/totp', 'signed-in', 'Confirm the authenticator app; each sign-in then needs a code', {
    body: session.ConfirmTotp,
    answer: session.RecoveryCodes,
  }),
  renewRecoveryCodes: post('/totp/recovery-codes', 'signed-in', 'Replace your recovery codes', {
    body: session.RenewRecoveryCodes,
    answer: session.RecoveryCodes,
  }),
  removeTotp: remove('/totp', 'signed-in', 'Remove the authenticator app', { body: session.RemoveTotp }),
}
