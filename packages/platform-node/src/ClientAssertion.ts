/**
 * Assertions that a platform writes to a file, such as the token of a Kubernetes service account.
 *
 * @since 1.0.0
 */
import { readFile } from "node:fs/promises"
import { CredentialsError } from "@store-api/core/AccessTokenError"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"

/**
 * Returns a function for `TokenRequest.clientAssertion`, which reads the file at each attempt, so the platform may
 * replace it at any time. Until the file is replaced, each attempt sends the same assertion, so the server must accept
 * it more than once. White space around the assertion is removed. `acquire` fails with `CredentialsError` if the file
 * is missing, unreadable or empty. The error contains neither the content nor the path.
 *
 * @example
 * ```ts
 * import { ClientCredentials, TokenRequest } from "@store-api/core"
 * import { ClientAssertion, NodeStoreAuth } from "@store-api/platform-node"
 *
 * const StoreAuthLive = NodeStoreAuth.layer({
 *   authUrl: "https://login.example/tenant/oauth2/v2.0/token",
 *   apiUrl: "https://api.store.example",
 *   credentials: ClientCredentials.withoutSecret("demo-client"),
 *   endpoint: {
 *     path: "", // `authUrl` is the whole URL
 *     request: TokenRequest.clientAssertion(ClientAssertion.fromFile("/var/run/secrets/token"), {
 *       scope: "orders:read"
 *     })
 *   }
 * })
 * ```
 *
 * @see NodeStoreAuth.config
 *
 * @since 1.0.0
 * @category constructors
 */
export const fromFile =
  (path: string) => (): Effect.Effect<Redacted.Redacted, CredentialsError> =>
    Effect.tryPromise({
      try: (signal) => readFile(path, { encoding: "utf8", signal }),
      catch: (error) => problem(`cannot be read from its file${codeOf(error)}`)
    }).pipe(
      Effect.map((text) => text.trim()),
      Effect.filterOrFail((text) => text !== "", () => problem("is empty in its file")),
      Effect.map((text) => Redacted.make(text))
    )

const problem = (reason: string) => new CredentialsError({ field: "clientAssertion", reason })

/** The code of the system, such as `ENOENT`. The message contains the path, which may be a pasted assertion. */
const codeOf = (error: unknown): string =>
  Predicate.hasProperty(error, "code") && Predicate.isString(error.code)
    ? ` (${error.code})`
    : ""
