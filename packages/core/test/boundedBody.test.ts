import { HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { countingFibers, httpReason, settle } from "@store-api/testing/effectMajor"
import { propEffect, test } from "@store-api/testing/test"
import { Effect, FastCheck as FC, TestClock } from "effect"
import * as boundedBody from "../src/internal/boundedBody.js"

describe("boundedBody", () => {
  const get = HttpClientRequest.get("https://auth.shop.example")
  const respond = (body: BodyInit | null) =>
    HttpClientResponse.fromWeb(get, new Response(body))

  /** A response with the bytes in chunks of this size, and whether its stream was cancelled. */
  const streamed = (bytes: Uint8Array, size: number) => {
    const state = { cancelled: false, pulled: 0 }
    const stream = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        if (state.pulled >= bytes.length) {
          controller.close()
          return
        }
        controller.enqueue(bytes.subarray(state.pulled, state.pulled + size))
        state.pulled += size
      },
      cancel: () => {
        state.cancelled = true
      }
    }, { highWaterMark: 0 })
    return { response: respond(stream), state }
  }

  /** A stream of this text that then fails. */
  const failingAfter = (text: string) =>
    new ReadableStream<Uint8Array>({
      pull: (controller) => {
        if (text !== "") controller.enqueue(new TextEncoder().encode(text))
        text = ""
        if (controller.desiredSize !== 0) controller.error(new Error("reset"))
      }
    }, { highWaterMark: 1 })

  test("reads a body of exactly the limit", function*() {
    assert.strictEqual(yield* boundedBody.read(respond("a".repeat(100)), 100), "a".repeat(100))
  })

  test.each([60, 100, 101])("reads no body that is a byte longer, in chunks of %i", function*(
    size
  ) {
    const { response } = streamed(new Uint8Array(101).fill(97), size)
    assert.isUndefined(yield* boundedBody.read(response, 100))
  })

  test("fails with the error of the client when a body fails after its first part", function*() {
    const error = yield* Effect.flip(boundedBody.read(respond(failingAfter("abc")), 100))
    assert.strictEqual(httpReason(error), "Decode")
  })

  test("reads a missing body as an empty text", function*() {
    for (const body of [null, ""]) {
      assert.strictEqual(yield* boundedBody.read(respond(body), 100), "")
    }
  })

  test("omits a byte order mark", function*() {
    assert.strictEqual(yield* boundedBody.read(respond("\ufeff{}"), 100), "{}")
  })

  test("counts bytes, not characters", function*() {
    assert.strictEqual(
      yield* boundedBody.read(respond("\u00e9".repeat(50)), 100),
      "\u00e9".repeat(50)
    )
    assert.isUndefined(yield* boundedBody.read(respond("\u00e9".repeat(51)), 100))
  })

  propEffect("reads the same text for any size of the chunks", [
    FC.string({ unit: "grapheme" }),
    FC.integer({ min: 1, max: 7 })
  ], ([text, size]) =>
    Effect.gen(function*() {
      const bytes = new TextEncoder().encode(text)
      const { response } = streamed(bytes, size)
      const body = yield* boundedBody.read(response, 10_000)
      assert.strictEqual(body, new TextDecoder().decode(bytes))
    }))

  test("cancels a longer body at the limit", function*() {
    const { response, state } = streamed(new Uint8Array(1_000_000), 10)
    assert.isUndefined(yield* boundedBody.read(response, 100))
    assert.isTrue(state.cancelled)
    assert.isAtMost(state.pulled, 200)
  })

  test("drain does not delay its caller", function*() {
    const { response, state } = streamed(new Uint8Array(65_536), 100)
    yield* boundedBody.drain(response)
    assert.strictEqual(state.pulled, 0)
    yield* settle
    assert.isAbove(state.pulled, 0, "control")
  })

  test.each([100, 1000, 65_536])(
    "drain reads a body of 64 KiB to its end, in chunks of %i",
    function*(size) {
      const { response, state } = streamed(new Uint8Array(65_536), size)
      yield* boundedBody.drain(response)
      yield* settle
      assert.isFalse(state.cancelled)
      assert.isAtLeast(state.pulled, 65_536)
    }
  )

  test.each([[65_537, 100], [65_537, 65_536], [1_000_000, 1000], [1_000_000, 65_536]])(
    "drain cancels a body of %i bytes after 64 KiB, in chunks of %i",
    function*([length, size]) {
      const { response, state } = streamed(new Uint8Array(length), size)
      yield* boundedBody.drain(response)
      yield* settle
      assert.isTrue(state.cancelled)
      assert.isAtLeast(state.pulled, 65_536)
      assert.isAtMost(state.pulled, 65_536 + 2 * size)
    }
  )

  test.each([
    ["an interruptible", Effect.interruptible],
    ["an uninterruptible", Effect.uninterruptible]
  ])("drain cancels a body after a second, even from %s region", function*([, region]) {
    yield* countingFibers((fibers) =>
      Effect.gen(function*() {
        let cancelled = false
        const slow = new ReadableStream<Uint8Array>({
          start: (controller) => controller.enqueue(new TextEncoder().encode("abc")),
          cancel: () => {
            cancelled = true
          }
        })
        yield* region(boundedBody.drain(respond(slow)))
        yield* TestClock.adjust("999 millis")
        assert.isFalse(cancelled)
        yield* TestClock.adjust("1 millis")
        yield* settle
        deepStrictEqual([cancelled, yield* fibers], [true, 0])
      })
    )
  })

  test("drain ignores a body that fails, or that was read before", function*() {
    const read = respond("abc")
    yield* read.text
    for (
      const response of [
        read,
        respond(failingAfter("abc")),
        respond(failingAfter("")),
        respond(null)
      ]
    ) {
      yield* countingFibers((fibers) =>
        Effect.gen(function*() {
          yield* boundedBody.drain(response)
          yield* settle
          assert.strictEqual(yield* fibers, 0)
        })
      )
    }
  })
})
