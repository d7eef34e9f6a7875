/** Values that must not be seen, and that nothing else looks like. */
import { randomBytes } from "node:crypto"

export interface Canary {
  readonly name: string
  readonly value: string
}

const part = () => randomBytes(4).toString("hex")

/** A secret of its own for each run, with all that encodings change. */
export const secret = (): Canary => ({
  name: "secret",
  value: `Sec${part()}+${part()}/${part()}=${part()}%7E${part()}~${part()}`
})

/** A token as the endpoint could have issued it. */
export const token = (value: string = randomBytes(32).toString("base64")): Canary => ({ name: "token", value })
