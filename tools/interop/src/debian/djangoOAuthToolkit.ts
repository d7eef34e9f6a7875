/**
 * django-oauth-toolkit from Debian, in Python: opaque tokens, and a resource that introspects each of them over HTTP.
 */
import { randomBytes } from "node:crypto"
import { copyFileSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Redacted, Schema } from "effect"
import type { AuthorizationServer, Credentials } from "../AuthorizationServer.js"
import { protectedResource } from "../loopback.js"
import { postFormOk } from "../wire.js"
import * as Program from "./Program.js"

export const django = Program.find({
  command: "/usr/bin/python3",
  // Ignores the variables and packages of the user, so that Debian's Python finds only Debian's packages.
  parameters: ["-E", "-s", "-c", "import oauth2_provider; print('is', oauth2_provider.__version__)"],
  pattern: /^is ([\d.]+)/,
  debianPackage: "python3-django-oauth-toolkit"
})

/** The body fields of a client's credentials. */
const form = ({ clientId, clientSecret }: Credentials) => ({
  client_id: clientId,
  client_secret: Redacted.value(clientSecret)
})

/** Its secret holds characters that a form encodes and the specification sends raw. */
export const rawClient: Credentials = {
  clientId: "interop-raw-client",
  clientSecret: Redacted.make("an+invented%20secret")
}

const Started = Schema.parseJson(Schema.Struct({ port: Schema.Int }))
const Introspection = Schema.parseJson(Schema.Struct({ active: Schema.Boolean }))

const invented = () => Redacted.make(randomBytes(24).toString("hex"))

export const djangoOAuthToolkit: AuthorizationServer = {
  name: "django-oauth-toolkit",
  version: django.version ?? "not installed",
  checks: "introspects each token over HTTP (RFC 7662)",
  revocation: { offered: true, how: "revocation endpoint (RFC 7009)" },
  start: ({ life }) =>
    Effect.gen(function*() {
      const credentials = { clientId: "interop-client", clientSecret: invented() }
      const resourceServer = { clientId: "interop-resource", clientSecret: invented() }
      const folder = yield* Program.folder
      // The path is the same from `src` and `dist`. The copy is for a user that may not read the sources.
      const script = join(folder, "server.py")
      yield* Effect.sync(() =>
        copyFileSync(fileURLToPath(new URL("../../src/debian/django_server.py", import.meta.url)), script)
      )
      const clients = [credentials, resourceServer, rawClient].map(({ clientId, clientSecret }) => [
        clientId,
        Redacted.value(clientSecret)
      ])
      const server = yield* Program.run(
        django,
        ["-E", "-s", script],
        `${JSON.stringify({ folder, life, clients })}\n`
      )
      const { port } = yield* Effect.raceFirst(
        Program.eventually(Effect.sync(server.output), (output) => output.includes("\n")).pipe(
          Effect.andThen(Schema.decode(Started)),
          Effect.orDie
        ),
        Effect.flatMap(server.ended, (errors) => Effect.dieMessage(`Django ended at once: ${errors}`))
      )
      const url = `http://127.0.0.1:${port}`
      const resource = yield* protectedResource((token) =>
        postFormOk(`${url}/introspect`, { ...form(resourceServer), token }).pipe(
          Effect.andThen(Schema.decode(Introspection)),
          Effect.orDie,
          Effect.map(({ active }) => active)
        )
      )
      return {
        authUrl: url,
        ...resource,
        credentials,
        tokenRequests: Effect.sync(() =>
          readFileSync(join(folder, "token-requests"), "utf8").split("\n").filter((line) => line === "POST").length
        ),
        revoke: (token) =>
          Effect.asVoid(postFormOk(`${url}/revoke`, { ...form(credentials), token: Redacted.value(token) }))
      }
    })
}
