/** What both stories do, and show while they do it. */
import { AccessTokenProvider, AuthorizedHttpClient } from "@store-api/core"
import { DateTime, Effect, Option, Stream } from "effect"
import * as Journal from "./journal.js"
import * as show from "./show.js"

/** Gets the token and shows who it was issued to and when it dies. Never the token itself. */
export const obtain = Effect.gen(function*() {
  const provider = yield* AccessTokenProvider.AccessTokenProvider
  const [took, token] = yield* Effect.timed(provider.get)
  yield* Journal.acquired(token)
  const told = (text: Option.Option<string>) =>
    Option.match(text, { onNone: () => "(not told)", onSome: (text) => show.printable(text) })
  yield* show.row("application", told(token.applicationName))
  yield* show.row("developer", Option.match(token.developerEmail, { onNone: () => "(not told)", onSome: show.masked }))
  yield* show.row("client id", told(token.clientId))
  yield* show.row("acquired", `${DateTime.formatIso(token.acquiredAt)}, in ${show.duration(took)}`)
  yield* show.row("expires", `${DateTime.formatIso(token.expiresAt)}, by itself`)
  return token
})

/** Asks for the token once more: it is the one from before, at once. */
export const fromCache = Effect.gen(function*() {
  const provider = yield* AccessTokenProvider.AccessTokenProvider
  const [took, token] = yield* Effect.timed(provider.get)
  yield* Journal.acquired(token)
  yield* show.row("acquired", `${DateTime.formatIso(token.acquiredAt)}, had in ${show.duration(took)}`)
})

/** Calls a protected resource and shows the answer's status. */
export const call = (path: string) =>
  Effect.gen(function*() {
    const client = yield* AuthorizedHttpClient.AuthorizedHttpClient
    const provider = yield* AccessTokenProvider.AccessTokenProvider
    const [took, status] = yield* Effect.timed(
      Effect.flatMap(client.get(path), (response) => Effect.as(Stream.runDrain(response.stream), response.status))
    )
    yield* Journal.called
    yield* Effect.flatMap(provider.current, Effect.transposeMapOption(Journal.acquired))
    yield* show.row(`GET ${show.printable(path.replace(/[?#].*$/s, ""))}`, `${status}, in ${show.duration(took)}`)
    return status
  })
