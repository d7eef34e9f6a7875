/** The flag and the variable of each setting. */

/** No flag takes the secret itself, because other users can read the arguments of a process. */
export const sources = {
  authUrl: { flag: "auth-url", variable: "STORE_API_AUTH_URL" },
  clientId: { flag: "client-id", variable: "STORE_API_CLIENT_ID" },
  apiUrl: { flag: "api-url", variable: "STORE_API_URL" },
  clientSecret: { flag: "secret-file", variable: "STORE_API_CLIENT_SECRET" },
  assertionFile: { flag: "assertion-file", variable: "STORE_API_CLIENT_ASSERTION_FILE" },
  cacheDir: { flag: "cache-dir", variable: "STORE_API_TOKEN_FOLDER" }
} as const

export type Setting = keyof typeof sources

/** Settings of a service. */
export const serviceSettings = [
  "authUrl",
  "clientId",
  "apiUrl",
  "clientSecret",
  "assertionFile"
] as const
