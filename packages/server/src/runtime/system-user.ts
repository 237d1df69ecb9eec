import { userInfo } from 'node:os'

/** The name in the audit log of the person who runs a command: the user of the system. */
export const toCommandActor = (): string => `command line: ${findSystemUser()}`

/** The name in the audit log of what the service does by itself. */
export const toServiceActor = (): string => `service: ${findSystemUser()}`

/** A user id may have no name, for example in a container. sudo tells who called it. */
function findSystemUser(): string {
  const { SUDO_USER: caller } = process.env
  const user = findUserName()
  return caller === undefined || caller === '' || caller === user ? user : `${caller} as ${user}`
}

function findUserName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.()}`
  }
}
