const maxCharacters = 512

/**
 * A member's name, to be shown and never opened: valid text without control characters, also without those that turn
 * the direction of writing and make `exe.txt` of `txt.exe`.
 */
export function toMemberPath(name: Buffer, containerName: string): string {
  const text = name.toString('utf8').replaceAll(hidden, '\ufffd')
  // What 7-Zip calls the one member of a compressed file, which has no name.
  if (text === `${containerName}~`) return ''
  const points = [...text]
  return points.length <= maxCharacters ? text : `${points.slice(0, maxCharacters - 1).join('')}…`
}

const hidden = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g
