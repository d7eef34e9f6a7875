/** Tests the page in Chromium, which this drives over a pipe with the DevTools protocol. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import type { Readable, Writable } from "node:stream"
import { assert, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator } from "@store-api/emulator"
import { test } from "@store-api/testing/test"
import { Clock, Effect } from "effect"
import {
  askToken,
  callApi,
  connect,
  formType,
  getToken,
  makeEarlierTokens,
  send,
  steer,
  until
} from "./utils.js"

const chromium = (process.env["PATH"] ?? "").split(delimiter)
  .flatMap((folder) =>
    ["chromium", "chromium-browser", "google-chrome"].map((name) => join(folder, name))
  )
  .find(existsSync)

type Fields = Readonly<Record<string, unknown>>

/** A browser with one tab, in which every name points to this machine. */
const launch = async () => {
  const profile = mkdtempSync(join(tmpdir(), "chromium-"))
  const child = spawn(
    chromium ?? assert.fail("Chromium is not installed. On Debian, install chromium."),
    [
      "--headless=new",
      "--no-sandbox",
      "--disable-gpu",
      "--hide-scrollbars",
      "--remote-debugging-pipe",
      `--user-data-dir=${profile}`,
      "--host-resolver-rules=MAP * 127.0.0.1"
    ],
    { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] }
  )
  const [to, from] = child.stdio.slice(3) as unknown as [Writable, Readable]
  const exit = once(child, "exit")
  // It may exit before it reads all.
  to.on("error", () => undefined)
  const waiting = new Map<unknown, (message: Fields) => void>()
  const problems: Array<Fields> = []
  let [sent, text, session] = [0, "", {}]
  from.setEncoding("utf8").on("data", (chunk: string) => {
    const lines = `${text}${chunk}`.split("\0")
    text = lines.pop() ?? ""
    for (const message of lines.map((line) => JSON.parse(line) as Fields)) {
      waiting.get(message["id"])?.(message)
      if (/exceptionThrown|entryAdded/.test(String(message["method"]))) problems.push(message)
    }
  })
  const call = (method: string, params: Fields = {}) =>
    new Promise<Fields>((resolve, reject) => {
      waiting.set(++sent, ({ error, result }) => {
        if (error === undefined) resolve(result as Fields)
        else reject(new Error(`${method}: ${JSON.stringify(error)}`))
      })
      to.write(`${JSON.stringify({ id: sent, method, params, ...session })}\0`)
    })
  const { targetId } = await call("Target.createTarget", { url: "about:blank" })
  const { sessionId } = await call("Target.attachToTarget", { targetId, flatten: true })
  session = { sessionId }
  for (const domain of ["Page", "Runtime", "Log"]) await call(`${domain}.enable`)
  const close = async () => {
    // At first not by a signal, after which its own children would still write to the profile.
    session = {}
    call("Browser.close").catch(() => undefined)
    const hanging = setTimeout(() => child.kill("SIGKILL"), 10_000)
    await exit
    clearTimeout(hanging)
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
  }
  return { call, close, problems }
}

const browse = Effect.gen(function*() {
  const { call, problems } = yield* Effect.acquireRelease(
    Effect.promise(launch),
    ({ close }) => Effect.promise(close)
  )
  const perform = (method: string, params?: Fields) =>
    Effect.promise(() => call(method, params))
  /** The value of an expression, which may be a promise. */
  const value = (expression: string) =>
    Effect.map(
      perform("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true }),
      (answer) => {
        assert.notProperty(answer, "exceptionDetails", expression)
        return (answer["result"] as Fields)["value"]
      }
    )
  const waitUntil = (condition: string) =>
    value(`new Promise((resolve) => {
      const look = () => (${condition}) ? resolve() : setTimeout(look, 50)
      look()
    })`).pipe(Effect.timeoutFail({
      duration: "20 seconds",
      onTimeout: () => new Error(`never: ${condition}`)
    }))
  const open = (url: string) =>
    Effect.zipRight(
      perform("Page.navigate", { url }),
      waitUntil(`location.href === "${url}" && document.readyState === "complete"`)
    )
  const size = (width: number, height: number, scheme = "light") =>
    Effect.all([
      perform("Emulation.setDeviceMetricsOverride", {
        width,
        height,
        deviceScaleFactor: 1,
        mobile: false
      }),
      perform("Emulation.setEmulatedMedia", {
        features: [{ name: "prefers-color-scheme", value: scheme }]
      })
    ])
  return { open, perform, problems, waitUntil, size, value }
})

/** Ten minutes with several tokens, by a clock that this moves. */
const busy = Effect.gen(function*() {
  let [behind, token] = [0, ""]
  const now = () => Clock.make().unsafeCurrentTimeMillis() - behind * 60_000
  const past = { unsafeCurrentTimeMillis: now, currentTimeMillis: Effect.sync(now) }
  const { fail, url } = yield* Emulator.make({
    port: 4010,
    steering: true,
    tokenLife: "4 minutes"
  }).pipe(
    Effect.withClock(Object.assign(Clock.make(), past))
  )
  const steps = {
    wrong: () => askToken(url, { body: "" }),
    token: () => Effect.map(getToken(url), (issued) => void (token = issued)),
    call: () => callApi(url, token, { path: `/orders?page=${Math.ceil(behind)}` }),
    revoke: () => steer(url, "revoke", { argument: "2" }),
    outage: () => Effect.zipRight(fail("token/503-nothing", 1), askToken(url)),
    refusal: () => Effect.zipRight(fail("api/403", 1), callApi(url, token)),
    fault: () => fail("api/401-once", 3)
  }
  const story =
    "8.4 wrong 8.2 token 8.1 call 7.6 call 6.8 call 6.1 call 5.2 call 4.6 token 4.5 call 4.1 call 3.6 call " +
    "3.3 revoke 3.3 call 3.1 token 2.9 call 2.4 call 1.7 refusal 0.8 outage 0.5 token 0.4 call 0.2 call 0.1 fault"
  for (const [, minutes, step] of story.matchAll(/([\d.]+) (\w+)/g)) {
    behind = Number(minutes)
    yield* steps[step as keyof typeof steps]() as Effect.Effect<unknown, Error>
  }
  behind = 0
  return `${url}/_emulator/`
})

describe.skipIf(chromium === undefined && process.env["CI"] !== "true")("the page", () => {
  test.live("a visitor can follow the emulator and steer it on the page", function*() {
    const { pendingFaults, url } = yield* Emulator.make({ steering: true })
    const { open, perform, problems, size, value, waitUntil } = yield* browse
    yield* size(360, 780)
    yield* open(`${url}/_emulator/`)
    yield* waitUntil("live.textContent === 'live'")
    assert.include(yield* value("empty.innerText"), "curl -d ")
    const token = yield* getToken(url)
    yield* callApi(url, token, { path: "/orders/7" })
    yield* waitUntil(
      "/^Token 1 of demo-client, issued .*, 2 requests$/.test(document.querySelector('[role=img]')?.ariaLabel)"
    )
    assert.match(String(yield* value("requests.innerText")), /GET \/orders\/7\s+200\s+#1/)

    yield* value("times.value = 2; document.querySelector('#fail button').click()")
    yield* waitUntil("faults.innerText === 'token/503-nothing × 2'")
    deepStrictEqual([(yield* askToken(url)).status, (yield* pendingFaults).length], [503, 1])
    yield* value("document.querySelector('#clear').click()")
    yield* waitUntil("faults.innerText === ''")

    yield* value("document.querySelector('#spans button').focus()")
    for (const key of ["Tab", "Tab", "Tab", "Tab", "Enter"]) {
      const code = {
        key,
        windowsVirtualKeyCode: key === "Tab" ? 9 : 13,
        text: key === "Tab" ? "" : "\r"
      }
      for (const type of ["keyDown", "keyUp"]) {
        yield* perform("Input.dispatchKeyEvent", { type, ...code })
      }
    }
    const bar = "document.querySelector('.row.revoked .bar')?.style"
    yield* waitUntil(`parseFloat(${bar}.left) + parseFloat(${bar}.width) < 75.1`)
    assert.strictEqual((yield* callApi(url, token)).status, 401)
    yield* waitUntil("requests.innerText.includes('was revoked')")
    yield* getToken(url)
    yield* waitUntil("tokens.innerText.startsWith('#2')")
    // The revoked token ended before the first of these times, and appears again below the newer one.
    yield* value("showSpan(0.001), showSpan(600)")
    assert.match(String(yield* value("tokens.innerText")), /^#2 .*#1 /s)

    assert.isFalse(yield* value("document.documentElement.scrollWidth > 360"))
    assert.notInclude(
      String(yield* value("JSON.stringify(state) + document.documentElement.outerHTML")),
      token
    )
    const { nodes } = yield* perform("Accessibility.getFullAXTree")
    const controls = (nodes as ReadonlyArray<
      Readonly<Record<string, { readonly value: string } | undefined>>
    >)
      .filter(({ role }) =>
        /^(button|combobox|spinbutton|image|table|region)$/.test(role?.value ?? "")
      )
    assert.isAbove(controls.length, 8)
    for (const { name, role } of controls) assert.isNotEmpty(name?.value, role?.value)
    deepStrictEqual(problems, [])
  })

  /** Everything that a page can try. The policy of our own page stops its form. */
  const attempts = (url: string, withForm = true) => `
    (async () => {
      const url = "${url}", type = "application/json", body = '{"argument":"api/403"}'
      const send = (options) => fetch(url + "fail", { method: "POST", body, ...options }).catch(() => {})
      await send({ headers: { "content-type": type } })
      await send({ mode: "no-cors", headers: { "content-type": "text/plain" } })
      await send({ mode: "no-cors", body: new Blob([body], { type }) })
      navigator.sendBeacon(url + "fail", new Blob([body], { type }))
      const frame = Object.assign(document.createElement("iframe"), { name: "there" })
      const form = Object.assign(document.createElement("form"), { method: "post", action: url + "fail", target: "there" })
      document.body.append(frame, form)
      form.enctype = "text/plain"
      form.append(Object.assign(document.createElement("input"), { name: body.slice(0, -1) + ',"x":"', value: '"}' }))
      if (${withForm}) await new Promise((resolve) => { frame.onload = resolve; form.submit() })
      return fetch(url).then((response) => response.status, () => "not readable")
    })()`

  test.live("no page of another origin steers the emulator", function*() {
    const { pendingFaults, url } = yield* Emulator.make({ steering: true })
    const { open, value } = yield* browse
    const foreign = Http.createServer((_, response) =>
      response.setHeader("Content-Type", "text/html").end("<body>")
    )
    yield* Effect.acquireRelease(
      Effect.promise(() => once(foreign.listen(0, "127.0.0.1"), "listening")),
      () => Effect.sync(() => foreign.close().closeAllConnections())
    )
    const { port } = foreign.address() as AddressInfo
    const own = new URL(url).port
    for (
      const [page, target] of [
        [`http://127.0.0.1:${port}/`, `${url}/_emulator/`],
        [`http://evil.example:${port}/`, `${url}/_emulator/`],
        [`http://evil.example:${own}/_emulator/`, "/_emulator/"]
      ] as const
    ) {
      yield* open(page)
      assert.include(["not readable", 403], yield* value(attempts(target)), page)
      deepStrictEqual(yield* pendingFaults, [], page)
    }
    // Control: the same succeeds from the page of the emulator.
    yield* open(`http://localhost:${own}/_emulator/`)
    assert.strictEqual(yield* value(attempts("/_emulator/", false)), 200)
    assert.isNotEmpty(yield* pendingFaults)
  })

  // `npm run picture` names the folder.
  const folder = process.env["STORE_API_PICTURE"]
  if (folder !== undefined) {
    test.live("the page is drawn", function*() {
      const { open, perform, size, waitUntil } = yield* browse
      yield* open(yield* busy)
      yield* waitUntil("document.querySelectorAll('.row').length > 3")
      yield* size(920, 860, "light")
      const { data } = yield* perform("Page.captureScreenshot")
      writeFileSync(join(folder, "emulator-page.png"), Buffer.from(String(data), "base64"))
    })
  }
})

describe("the requests by which the page steers", () => {
  test.live("a steering request that the page itself would not send is refused", function*() {
    const { pendingFaults, requests, url } = yield* Emulator.make({ steering: true })
    const { host, port } = new URL(url)
    type Row = readonly [
      status: number,
      headers: Record<string, string>,
      body?: object,
      path?: string
    ]
    const withHeader = (status: number, name: string, ...values: ReadonlyArray<string>) =>
      values.map((value): Row => [status, { [name]: value }])
    const withBody = (...bodies: ReadonlyArray<object>) =>
      bodies.map((body): Row => [400, {}, body])
    const rows: ReadonlyArray<Row> = [
      ...withHeader(
        403,
        "Host",
        "evil.example",
        "127.0.0.1",
        "localhost:1",
        `127.0.0.1.evil.example:${port}`
      ),
      ...withHeader(
        403,
        "Origin",
        "http://evil.example",
        "null",
        `https://${host}`,
        "http://127.0.0.1"
      ),
      ...withHeader(403, "Sec-Fetch-Site", "cross-site", "same-site"),
      ...withHeader(
        415,
        "Content-Type",
        "text/plain",
        formType,
        "multipart/form-data; boundary=x"
      ),
      ...withBody({ argument: "canary" }, { argument: "token/tls-expired" }, {
        argument: "api/403",
        times: "0"
      }, []),
      [404, {}, {}, "nothing"]
    ]
    for (const [status, headers, body = { argument: "api/403" }, path = "fail"] of rows) {
      const response = yield* steer(url, path, body, headers)
      const hasMessage = "message" in JSON.parse(response.text)
      deepStrictEqual([response.status, hasMessage], [status, true], JSON.stringify(headers))
    }
    for (const path of ["", "events"]) {
      const { status } = yield* send(url, {
        path: `/_emulator/${path}`,
        headers: { Host: "evil.example" }
      })
      assert.strictEqual(status, 403)
    }
    deepStrictEqual([yield* pendingFaults, yield* requests], [[], []])
    const own = { Host: host, Origin: url, "Sec-Fetch-Site": "same-origin" }
    assert.strictEqual((yield* steer(url, "fail", { argument: "api/403" }, own)).status, 200)
    assert.lengthOf(yield* pendingFaults, 1)
  })

  test.live("a steering request is refused by an emulator without the option steering", function*() {
    const { url } = yield* Emulator.make()
    assert.strictEqual((yield* steer(url, "fail", { argument: "api/403" })).status, 401)
  })

  test.live("a client that does not read its events gets the latest state instead of all", function*() {
    const { url } = yield* Emulator.make({ steering: true })
    yield* Effect.all(Effect.replicate(send(url, { path: `/${"x".repeat(15_000)}` }), 200), {
      concurrency: 8
    })
    const socket = yield* connect(url)
    socket.write(`GET /_emulator/events HTTP/1.1\r\nHost: ${new URL(url).host}\r\n\r\n`)
    yield* Effect.replicateEffect(Effect.zipRight(send(url), Effect.sleep("150 millis")), 10)
    let text = ""
    socket.on("data", (chunk: Buffer) => (text += chunk.toString()))
    yield* until(Effect.sync(() => text.includes("{\"id\":210,")))
    assert.isBelow(text.match(/^data: /gm)?.length ?? 11, 10)
    assert.match(text.slice(text.lastIndexOf("data: ")), /"requests":\[\{"id":11,/)
  })

  /** 10 000 tokens of an earlier emulator, and how often the first or the last of them was read. */
  const manyTokens = () => {
    const reads = { first: 0, last: 0 }
    const tokens = makeEarlierTokens(10_000)
    const count = (index: number, name: keyof typeof reads) =>
      Object.defineProperty(tokens[index], "scope", {
        enumerable: true,
        get: () => {
          reads[name]++
          return ""
        }
      })
    count(0, "first")
    count(9_999, "last")
    return { reads, tokens }
  }

  /** The events of three pages, which are open for a second. */
  const threePages = (tokens: Emulator.Options["tokens"]) =>
    Effect.gen(function*() {
      const { url } = yield* Emulator.make({ steering: true, tokens })
      const started = performance.now()
      const pages = yield* Effect.all(Effect.replicate(connect(url), 3))
      const texts = pages.map((socket) => {
        const page = { text: "" }
        socket.on("data", (chunk: Buffer) => (page.text += chunk.toString()))
        socket.write(`GET /_emulator/events HTTP/1.1\r\nHost: ${new URL(url).host}\r\n\r\n`)
        return page
      })
      yield* until(Effect.sync(() => texts.every(({ text }) => text.includes("data: "))))
      yield* Effect.sleep("1 second")
      return { elapsed: performance.now() - started, texts: texts.map(({ text }) => text) }
    })

  test.live("the pages share a computation of the state, which uses only the newest tokens", function*() {
    const { reads, tokens } = manyTokens()
    const before = { ...reads }
    const { elapsed } = yield* threePages(tokens)
    const [first, last] = [reads.first - before.first, reads.last - before.last]
    assert.isAbove(last, first + 3)
    assert.isAtMost(last - first, elapsed / 100 + 1)
  })

  test.live("a page receives the state once if nothing changes", function*() {
    const { texts } = yield* threePages(manyTokens().tokens)
    deepStrictEqual(texts.map((text) => text.match(/^data: /gm)?.length), [1, 1, 1])
    assert.match(texts[0] ?? "", /"tokens":\[\{"id":9801,/)
  })

  test.live("requests that steer meet no fault on an emulator whose connections fail or use TLS", function*() {
    for (const tls of [false, true]) {
      const { pendingFaults, url } = yield* Emulator.make({ steering: true, tls })
      const plain = url.replace("https", "http")
      yield* steer(plain, "fail", { argument: "token/reset-on-accept", times: "1" })
      assert.strictEqual((yield* steer(plain, "tokens", {})).status, 200)
      deepStrictEqual((yield* pendingFaults).map(({ scenario }) => scenario), [
        "token/reset-on-accept"
      ])
      yield* Effect.flip(send(plain, { path: "/orders" }))
      deepStrictEqual(yield* pendingFaults, [])
    }
  })
})
