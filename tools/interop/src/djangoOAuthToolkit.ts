/**
 * django-oauth-toolkit from Debian, in Python: opaque tokens, and a resource that introspects each of them over HTTP.
 */
import { copyFileSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import {
  type AuthorizationServer,
  credentials,
  form,
  introspecting,
  rawClient,
  resourceServer,
  standardEndpoints
} from "./AuthorizationServer.js"
import * as Program from "./Program.js"

export const program = Program.find({
  command: "/usr/bin/python3",
  // Ignores the variables and packages of the user, so that Debian's Python finds only Debian's packages.
  parameters: ["-E", "-s", "-c", "import oauth2_provider; print('is', oauth2_provider.__version__)"],
  pattern: /^is ([\d.]+)/,
  debianPackage: "python3-django-oauth-toolkit"
})

export const djangoOAuthToolkit: AuthorizationServer = {
  name: "django-oauth-toolkit",
  version: program.version ?? "not installed",
  ...standardEndpoints,
  start: ({ life }) =>
    Effect.gen(function*() {
      const folder = yield* Program.folder
      const port = yield* Program.freePort
      const url = `http://127.0.0.1:${port}`
      // The path is the same from `src` and `dist`. The copy is for a user that may not read the sources.
      const script = join(folder, "server.py")
      copyFileSync(fileURLToPath(new URL("../src/django_server.py", import.meta.url)), script)
      const clients = [credentials, resourceServer, rawClient].map(form)
      const input = `${JSON.stringify({ folder, port, life, clients })}\n`
      yield* Program.startServer(program, ["-E", "-s", script], Program.responds(url), input)
      return {
        ...yield* introspecting(`${url}/introspect`, `${url}/revoke`),
        authUrl: url,
        tokenRequests: Effect.sync(() => readFileSync(join(folder, "token-requests"), "utf8").length)
      }
    })
}
