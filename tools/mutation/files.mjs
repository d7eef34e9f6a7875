/**
 * What is mutated, and the tests that guard it: of each file its own, without a socket, a process or the wall clock, since
 * they run hundreds of times. A mutant that only other tests would kill counts as survived.
 */
const provider = [
  "",
  "Status",
  "Edges",
  "Pauses",
  "Clocks",
  "Rejection",
  "Renewal",
  "Failure",
  "Flight",
  "Metrics",
  "Bounds"
]
  .map(
    (name) => `AccessTokenProvider${name}`
  )

export const least = 90

/**
 * Tests left out by words of their names, since they take longer than all others together: the others have to find what
 * these find. Words that no test has any more leave none out.
 */
export const slow = [
  "callers at any moment",
  "moment by moment",
  "ten minutes",
  "the pauses double",
  "jumps during the acquisition",
  "under load",
  "calls before and after its timers fire",
  "gets at most one request a cool-down",
  "lifetimes of 1 s and less",
  "1 000 concurrent first callers",
  "at most once a second",
  "takes everything printable",
  "takes nothing else",
  "byte for byte",
  "however many failures",
  "never throws",
  "whatever is sent",
  "is taken exactly when",
  "no description holds"
]

export const files = [
  { name: "AccessToken", tests: ["AccessToken"] },
  { name: "TokenPolicy", tests: ["TokenPolicy"] },
  { name: "TokenResponse", tests: ["TokenResponse"] },
  { name: "ClientCredentials", tests: ["ClientCredentials"] },
  { name: "AccessTokenProvider", tests: provider },
  { name: "internal/tokenState", tests: provider },
  { name: "internal/heldToken", tests: provider },
  { name: "internal/measure", tests: ["AccessTokenProviderMetrics"] }
].map(({ name, tests }) => ({
  path: `packages/core/src/${name}.ts`,
  tests: tests.map((test) => `packages/core/test/${test}.test.ts`)
}))
