import { useMutation } from '@tanstack/react-query'
import { type ApiError, call } from './call.ts'

const backKey = 'assay-sso-back'
const popupKey = 'assay-sso-popup'
const channelName = 'assay-signed-in'

/** Opens the page of the issuer. `back` is the page of the console to return to. */
export function useStartSso(back: string) {
  return useMutation<void, ApiError>({
    mutationFn: async () => {
      const { url } = await call('startSso')
      sessionStorage.setItem(backKey, back)
      location.assign(url)
    },
  })
}

/** Opens the page of the issuer in a window of its own, so that a form on this page stays. */
export function useStartSsoInWindow() {
  return useMutation<void, ApiError>({
    mutationFn: async () => {
      // Browsers allow a new window only during the click, before the service has answered. The window has no name: an
      // earlier one of the same name may show the issuer, whose storage this page cannot reach.
      const opened = window.open('', '_blank', 'popup,width=480,height=720')
      try {
        const { url } = await call('startSso')
        if (opened === null) return location.assign(url)
        opened.sessionStorage.setItem(popupKey, 'yes')
        opened.location.assign(url)
      } catch (error) {
        opened?.close()
        throw error
      }
    },
  })
}

/** The page to return to after a sign-in; used once. */
export function takeReturnPath(): string {
  const back = sessionStorage.getItem(backKey)
  sessionStorage.removeItem(backKey)
  return back ?? '/console/'
}

/** Closes the window that was opened for a sign-in and tells the page behind it. False in other windows. */
export function closeSsoWindow(): boolean {
  if (sessionStorage.getItem(popupKey) === null) return false
  sessionStorage.removeItem(popupKey)
  const channel = new BroadcastChannel(channelName)
  channel.postMessage('signed-in')
  channel.close()
  window.close()
  return true
}

/** Calls back when a sign-in in another window succeeded. Returns a function that ends this. */
export function onSignedInElsewhere(callback: () => void): () => void {
  const channel = new BroadcastChannel(channelName)
  channel.onmessage = callback
  return () => channel.close()
}
