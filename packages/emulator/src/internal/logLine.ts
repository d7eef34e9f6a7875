/** The lines of the log, which show no secret, and of a token only the number. */
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import type { RecordedRequest } from "../RecordedRequest.js"

/** What the log has lines about: a request, or a connection that met a fault, which has neither status nor token. */
export type Entry =
  & Pick<RecordedRequest, "startedAt" | "endedAt" | "status" | "token" | "reason">
  & Partial<RecordedRequest>

/** The part that is shown: no secret, and of its token only the number. */
export const describeEntry = (
  { endedAt, id, method, reason, startedAt, status, token, url }: Entry
) => ({
  id,
  method,
  url,
  startedAt,
  endedAt: Option.getOrNull(endedAt),
  status: Option.getOrNull(status),
  reason: Option.getOrNull(reason),
  token: Option.getOrNull(Option.map(token, ({ expiresAt, id }) => ({ id, expiresAt }))),
  duration: Option.getOrNull(
    Option.map(endedAt, (end) => end.epochMillis - startedAt.epochMillis)
  )
})

/** A line of the log, without the query: the start of a request or of a connection that met a fault, or its end. */
export const formatLine = (entry: Entry): string => {
  const { duration, endedAt, id, method, reason, startedAt, status, token, url } =
    describeEntry(entry)
  const subject = id === undefined ? "connection" : [id, method, removeQuery(url)].join(" ")
  const suffix = token === null
    ? ""
    : `, token #${token.id} until ${formatTime(token.expiresAt)}`
  const because = reason === null ? "" : `: ${reason}`
  if (endedAt === null) return `${formatTime(startedAt)} → ${subject}${suffix}${because}`
  // A client that ignores certificates gets responses on a connection with a fault.
  const noResponse = id === undefined ? "ended after" : "no response after"
  const outcome = status === null ? noResponse : `${status} in`
  return `${formatTime(endedAt)} ← ${subject} ${outcome} ${duration} ms${suffix}${because}`
}

/** The line as one JSON object. */
export const formatJson = (entry: Entry): string => {
  const fields = describeEntry(entry)
  return JSON.stringify({
    event: fields.endedAt === null ? "start" : "end",
    ...fields,
    url: removeQuery(fields.url)
  })
}

const removeQuery = (url?: string) => url?.replace(/[?].*$/s, "?…")

/** In the time zone of this machine, as on the page. */
export const formatTime = (at: DateTime.Utc) =>
  DateTime.toDateUtc(at).toTimeString().slice(0, 8)
