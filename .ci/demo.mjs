/** Reads what the demo printed: the whole story, and nothing that is secret. */
import { readFileSync } from "node:fs"

const [output, errors] = process.argv.slice(2).map((path) => readFileSync(path, "utf8"))

const wanted = [
  /application +Demo application/,
  /developer +d\*\*\*@/,
  /client id +demo-client/,
  /expires +\d{4}-\d\d-\d\dT/,
  /token requests +1 in all/,
  /TokenExpiredError, Elapsed/,
  /api 401, then token 200, then api 200/,
  /token requests +3 in all/,
  /token 3 .*in use/
]

// The emulator's tokens are 32 random bytes in base64, its demo secret is written in its source.
const tokenLike = /[A-Za-z0-9+/]{43}=/
const clientSource = readFileSync("packages/emulator/src/Client.ts", "utf8")
const secret = /clientSecret: Redacted\.make\("([^"]{10,})"\)/.exec(clientSource)?.[1]
const address = /developerEmail: "([^"]+@[^"]+)"/.exec(clientSource)?.[1]

const fail = (message) => {
  process.stdout.write(`${message}\n`)
  process.exitCode = 1
}

for (const pattern of wanted) if (!pattern.test(output)) fail(`The demo does not tell: ${pattern}`)

if (secret === undefined || address === undefined) fail("There is no secret or address to look for.")
else if (!tokenLike.test(Buffer.alloc(32, 7).toString("base64"))) fail("No token would be found.")
else {
  for (const text of [output, errors]) {
    for (const form of [secret, encodeURIComponent(secret), Buffer.from(secret).toString("base64"), address]) {
      if (text.includes(form)) fail("The demo shows a secret or an e-mail address.")
    }
    if (tokenLike.test(text)) fail("The demo shows what looks like a token.")
    if (text.includes("\u001b")) fail("The demo writes terminal codes into a file.")
  }
}
