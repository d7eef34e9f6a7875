/** The picture of the README. `npm run picture` writes it. */
import { Effect, Logger, LogLevel } from "effect"
import { expect, it } from "vitest"
import { read } from "../support/pages.js"
import { draw, record } from "./tokenHour.js"

const picture = "docs/images/token-hour.svg"

it(`${picture} shows what \`npm run picture\` draws`, async () => {
  const recording = await Effect.runPromise(Logger.withMinimumLogLevel(record, LogLevel.None))
  await expect(draw(read(picture), recording)).toMatchFileSnapshot(`../../${picture}`)
})
