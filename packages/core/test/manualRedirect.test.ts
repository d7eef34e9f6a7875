import { FetchHttpClient } from "@effect/platform"
import { describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Effect, Option } from "effect"
import * as manualRedirect from "../src/internal/manualRedirect.js"
import { test } from "./support/test.js"

describe("manualRedirect", () => {
  const requestInit = Effect.serviceOption(FetchHttpClient.RequestInit)

  test("sets only redirect when no RequestInit is provided", function*() {
    const withoutRedirects = yield* manualRedirect.make
    deepStrictEqual(yield* withoutRedirects(requestInit), Option.some({ redirect: "manual" as const }))
    deepStrictEqual(yield* requestInit, Option.none(), "unchanged outside the effect")
  })

  test("merges the RequestInit of the layer and of the request, and overrides redirect", function*() {
    const withoutRedirects = yield* Effect.provideService(manualRedirect.make, FetchHttpClient.RequestInit, {
      credentials: "omit",
      cache: "no-store",
      redirect: "follow"
    })
    deepStrictEqual(
      yield* Effect.provideService(withoutRedirects(requestInit), FetchHttpClient.RequestInit, {
        cache: "reload",
        keepalive: true,
        redirect: "error"
      }),
      Option.some({
        credentials: "omit" as const,
        cache: "reload" as const,
        keepalive: true,
        redirect: "manual" as const
      })
    )
  })
})
