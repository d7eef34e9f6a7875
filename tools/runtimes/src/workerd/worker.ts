/**
 * The contract as a worker. workerd runs code only for a request: `GET /?laboratory=…&check=<number>` runs one check,
 * and without a number returns the number of checks.
 */
import { Effect } from "effect"
import { run } from "../Check.js"
import * as contract from "../contract.js"
import * as own from "./checks.js"
import * as orders from "./orders.js"

export default {
  fetch: async (request: Request): Promise<Response> => {
    const { origin, pathname, searchParams } = new URL(request.url)
    const parameter = (name: string) => searchParams.get(name) ?? ""

    if (pathname === "/orders") {
      const way = parameter("way") === "shared" ? orders.shared : orders.perRequest
      const [url, clientId, clientSecret] = [parameter("url"), parameter("clientId"), parameter("clientSecret")]
      return new Response(null, { status: await way({ url, clientId, clientSecret }) })
    }

    const checks = [...contract.checks({ certificates: false }), ...own.checks(origin)]
    const check = searchParams.has("check") ? checks[Number(parameter("check"))] : undefined
    return Response.json(
      check === undefined
        ? { declared: checks.length }
        : await Effect.runPromise(run(check, parameter("laboratory")))
    )
  }
}
