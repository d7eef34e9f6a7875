/** Forms over HTTP, as one server sends them to another: encoded, unlike the token request of the specification. */
import { Effect } from "effect"

export const postForm = (url: string, fields: Readonly<Record<string, string>>): Effect.Effect<Response> =>
  Effect.promise((signal) => fetch(url, { method: "POST", body: new URLSearchParams(fields), signal }))

/** Posts a form that has to be answered with 200; the body is the answer. */
export const postFormOk = (url: string, fields: Readonly<Record<string, string>>): Effect.Effect<string> =>
  Effect.gen(function*() {
    const response = yield* postForm(url, fields)
    const body = yield* Effect.promise(() => response.text())
    return response.status === 200 ? body : yield* Effect.dieMessage(`${url} answered ${response.status}: ${body}`)
  })
