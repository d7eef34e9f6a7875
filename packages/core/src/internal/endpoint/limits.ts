/** The limits and times of the token endpoint. */
import type * as Duration from "effect/Duration"

/** For one request and its response. */
export const defaultAttemptTimeout: Duration.DurationInput = "10 seconds"

/** For the credentials, all attempts and the delays between them. */
export const defaultDeadline: Duration.DurationInput = "30 seconds"

export const defaultMaxLifetime: Duration.DurationInput = "24 hours"

export const defaultMaxResponseBytes = 64 * 1024

/** The maximum of the option `maxLifetime`: a year. */
export const longestLifeMillis = 365 * 24 * 60 * 60_000

/** The attempts after the first. */
export const maxRetries = 5

/** The delays before them: doubling, times 75 % to 100 %. */
export const retryDelayMillis = { base: 200, max: 1000 }

/** For reading the credentials again, after the endpoint refused the first ones. */
export const rereadMillis = 10_000

/** For the body of a refusal, whose status is enough. */
export const refusalBodyMillis = 1000

/** The characters of a value that the response must not repeat. A shorter one may be a common word. */
export const shortestSecret = 8

/** The characters of a description that an error keeps. */
export const longestDescription = 256

/** How often a text may be escaped: percent-encoding and escapes for HTML or JSON, one in the other. */
export const deepestEscape = 4

/** How deep the body of a refusal is searched for its code and its text. */
export const deepestPlace = 4

/** How many causes of an error are searched. */
export const deepestCause = 5
