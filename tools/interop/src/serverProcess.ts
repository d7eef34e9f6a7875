/** The process of one server. `ownProcess.ts` starts it, and it exits when its parent does. */
import { Cause, Effect, Redacted } from "effect"
import type { AuthorizationServer, Running } from "./AuthorizationServer.js"
import type { Answer, Question } from "./ownProcess.js"

const [module = "", name = "", life = ""] = process.argv.slice(2)

const answers = ({ calls, revoke, tokenRequests, unauthorized }: Running, { ask, id, token }: Question) => {
  const counts = Effect.all({ calls, tokenRequests, unauthorized })
  const revoked = Effect.suspend(() => revoke?.(Redacted.make(token)) ?? Effect.dieMessage("No revocation is offered."))
  return ask === "counts"
    ? Effect.map(counts, (counts): Answer => ({ id, counts }))
    : Effect.as(revoked, { id } satisfies Answer)
}

const send = (message: unknown) => process.send?.(message)

const main = Effect.gen(function*() {
  const servers = yield* Effect.promise(() => import(module) as Promise<Record<string, AuthorizationServer>>)
  const server = servers[name]
  if (server === undefined) return yield* Effect.dieMessage(`${module} has no server ${name}.`)
  const running = yield* server.start({ life: Number(life) })
  const { apiUrl, authUrl, credentials: { clientId, clientSecret }, revoke } = running
  const revokes = revoke !== undefined
  process.on("message", (question: Question) => void Effect.runPromise(answers(running, question)).then(send))
  send({ apiUrl, authUrl, clientId, clientSecret: Redacted.value(clientSecret), revokes })
  return yield* Effect.async<never>((resume) => void process.once("disconnect", () => resume(Effect.interrupt)))
})

void main.pipe(
  Effect.scoped,
  Effect.tapErrorCause((cause) => Cause.isInterruptedOnly(cause) ? Effect.void : Effect.logError(cause)),
  Effect.runPromiseExit
).then(() => process.exit())
