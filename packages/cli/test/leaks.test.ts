import { assert, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { leaksIn } from "../../core/test/support/leaksIn.js"

const base64 = (text: string) => Buffer.from(text).toString("base64")

const base64url = (text: string) => Buffer.from(text).toString("base64url")

const hex = (text: string) => Buffer.from(text).toString("hex")

const inForms = (text: string) => new URLSearchParams([["", text]]).toString().slice(1)

const secrets = {
  "a secret with signs": "an+invented/secret%1 ü~?>",
  "a secret of letters": "an-invented-secret-of-the-client",
  "a token": `emulated.${"Zm9v-YmFy_".repeat(6)}`
}

/** What a program might print in good faith. */
const forms: Record<string, (secret: string) => string> = {
  "as it is": (secret) => secret,
  "in a sentence": (secret) => `The secret is ${secret}.`,
  "in JSON": (secret) => JSON.stringify({ secret }),
  "in a URL": (secret) => `http://localhost/?a=1&secret=${encodeURIComponent(secret)}&b=2`,
  "in a URL, in small letters": (secret) => encodeURIComponent(secret).replace(/%../g, (code) => code.toLowerCase()),
  "in a form": (secret) => `client_id=me&client_secret=${inForms(secret)}`,
  "in hexadecimal": (secret) => `<Buffer ${hex(secret)}>`,
  "in hexadecimal, byte by byte": (secret) => Buffer.from(secret).toString("hex").replace(/../g, "$& "),
  "in hexadecimal, in capitals": (secret) => hex(secret).toUpperCase(),
  "in base64": base64,
  "in base64url": base64url,
  "in base64, in a URL": (secret) => encodeURIComponent(base64(secret)),
  "in base64, in lines": (secret) => base64(`user:${secret}`).replace(/.{16}/g, "$&\r\n"),
  "in base64 of a form": (secret) => base64(inForms(secret)),
  "in base64 of JSON": (secret) => base64(JSON.stringify({ n: 1, secret })),
  "cut off at its end": (secret) => `${secret.slice(0, -3)}…`,
  "cut off at its start": (secret) => `…${secret.slice(3)}`,
  "in colours": (secret) => `${secret.slice(0, 9)}\u001b[31m${secret.slice(9)}\u001b[0m`,
  "wrapped": (secret) => `${secret.slice(0, 9)}\r\n${secret.slice(9)}`,
  ...Object.fromEntries(
    ["", "i", "id", "ids", "demo-client", "an id of another length"].flatMap((id) => [
      [`in Basic, behind ${id}`, (secret: string) => `Authorization: Basic ${base64(`${id}:${secret}`)}`],
      [`in Basic of forms, behind ${id}`, (secret: string) => `Basic ${base64(`${inForms(id)}:${inForms(secret)}`)}`],
      [`in base64url, behind ${id} and before more`, (secret: string) => base64url(`${id}:${secret}:more`)]
    ])
  )
}

describe("what is printed is searched for what is private", () => {
  for (const [kind, secret] of Object.entries(secrets)) {
    for (const [form, write] of Object.entries(forms)) {
      it(`${kind} is found ${form}`, () => {
        deepStrictEqual(leaksIn(`before ${write(secret)} after`, ["something else", secret]), [secret])
      })
    }

    it(`${kind} is not found where another is`, () => {
      const another = secret.split("").reverse().join("")
      for (const [form, write] of Object.entries(forms)) {
        deepStrictEqual(leaksIn(`before ${write(another)} after`, [secret]), [], form)
      }
    })
  }

  it("nothing is found in what a run may print", () => {
    const text = [
      "store-api: \u001b[31mThe token endpoint refused the request (status 401): check the client id and the secret.\u001b[0m",
      "folder   /home/user/.local/state/store-api/tokens",
      "token    good for another 59 min 59 s, until 2030-01-01T00:00:00.000Z",
      "{\"method\":\"GET\",\"path\":\"/orders\",\"clientId\":\"demo-client\"}"
    ].join("\n")
    deepStrictEqual(leaksIn(text, Object.values(secrets)), [])
    assert.isAbove(text.length, 100)
  })
})
