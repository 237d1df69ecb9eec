/** Something that the person at the keyboard can put right. `message` is a sentence that says how. */
export class Mistake extends Error {
  override readonly name = 'Mistake'
}
