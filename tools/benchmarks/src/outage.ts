/** The endpoint fails for three seconds around the end of a token, at several phases. */
import { pause, type Spread, spread } from "./harness.js"
import { store } from "./peers/effect.js"
import { aheadOf } from "./peers/index.js"
import { type Settings, withTokenServer } from "./tokenServer.js"

/** `from`: seconds from the end of the token to the beginning of the outage. */
interface Phase {
  readonly from: number
  readonly fault: Settings["fault"]
}

interface Outage extends Phase {
  /** Token requests while the endpoint failed. */
  readonly requests: number
  /** Milliseconds from the end of the outage until a caller has the first new token. */
  readonly recovery: number
  /** Calls that failed although the old token was valid. */
  readonly lost: number
}

export interface Outages {
  readonly count: number
  readonly requests: Spread & { readonly worst: number }
  readonly recovery: Spread & { readonly worst: number }
  readonly lost: number
  /** The phase of the worst recovery. */
  readonly worst: Phase
}

const outageMillis = 3000
const callers = 10
const rest = 10

const measureOutage = ({ fault, from }: Phase, life: number): Promise<Outage> =>
  withTokenServer({ life, delay: 20, fault: "none" }, async (server) => {
    const client = await store.make({ server, ahead: aheadOf(life) })
    const first = await client.token()
    const dies = server.expiresAt(first)
    const begins = dies + from * 1000
    const ends = begins + outageMillis
    let recovered = Infinity
    let lost = 0
    const calling = Promise.all(Array.from({ length: callers }, async () => {
      while (recovered === Infinity && Date.now() < ends + 10_000) {
        const value = await client.token().catch(() => undefined)
        const now = Date.now()
        if (value === undefined && now < dies) lost++
        if (value !== undefined && value !== first && now >= ends) recovered = Math.min(recovered, now)
        await pause(rest)
      }
    }))
    await pause(begins - Date.now())
    server.settings.fault = fault
    await pause(ends - Date.now())
    server.settings.fault = "none"
    const failing = server.arrivals.filter(({ at }) => at >= begins && at < ends).length
    await calling
    await client.close()
    return { fault, from, requests: failing, recovery: recovered - ends, lost }
  })

export const measureOutages = async (quick: boolean): Promise<Outages> => {
  const life = quick ? 4 : 8
  // The first outage ends when the renewal has just begun; the last begins with the last attempt.
  const phases = quick ? [-2, -0.5] : [-3.5, -3, -2.5, -2, -1.5, -1, -0.5]
  const faults = quick ? ["status 503" as const] : ["status 503" as const, "reset" as const]
  const repetitions = quick ? 1 : 2
  const outages = await Promise.all(
    phases.flatMap((from) =>
      faults.flatMap((fault) => Array.from({ length: repetitions }, () => measureOutage({ from, fault }, life)))
    )
  )
  const slowest = outages.reduce((a, b) => a.recovery >= b.recovery ? a : b)
  const requests = outages.map(({ requests }) => requests)
  return {
    count: outages.length,
    requests: { ...spread(requests), worst: Math.max(...requests) },
    recovery: { ...spread(outages.map(({ recovery }) => recovery)), worst: slowest.recovery },
    lost: outages.reduce((sum, { lost }) => sum + lost, 0),
    worst: slowest
  }
}
