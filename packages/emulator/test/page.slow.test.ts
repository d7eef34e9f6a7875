/** Tests the page in Chromium, which this drives over a pipe with the DevTools protocol. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { accessSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
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
import { askToken, callApi, getToken, send, steer } from "./utils.js"

const chromium = (process.env["PATH"] ?? "").split(delimiter)
  .flatMap((folder) => ["chromium", "chromium-browser", "google-chrome"].map((name) => join(folder, name)))
  .find((path) => {
    try {
      accessSync(path)
      return true
    } catch {
      return false
    }
  })

type Fields = Readonly<Record<string, unknown>>

/** A browser in which every name points to this machine, with one tab. */
const openBrowser = Effect.acquireRelease(
  Effect.promise(async () => {
    const profile = mkdtempSync(join(tmpdir(), "chromium-"))
    const child = spawn(chromium ?? assert.fail("Chromium is not installed. On Debian, install chromium."), [
      ...["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"],
      ...[`--user-data-dir=${profile}`, "--host-resolver-rules=MAP * 127.0.0.1"]
    ], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] })
    const [to, from] = child.stdio.slice(3) as unknown as [Writable, Readable]
    const waiting = new Map<number, (message: Fields) => void>()
    const problems: Array<string> = []
    let [sent, text] = [0, ""]
    from.setEncoding("utf8").on("data", (chunk: string) => {
      const messages = `${text}${chunk}`.split("\0")
      text = messages.pop() ?? ""
      for (const message of messages.map((line) => JSON.parse(line) as Fields)) {
        waiting.get(message["id"] as number)?.(message)
        const isProblem = ["Runtime.exceptionThrown", "Log.entryAdded"].includes(String(message["method"]))
        if (isProblem) problems.push(JSON.stringify(message["params"]))
      }
    })
    const call = (method: string, params: Fields = {}, session: Fields = {}) =>
      new Promise<Fields>((resolve, reject) => {
        waiting.set(++sent, ({ error, result }) => {
          if (error === undefined) resolve(result as Fields)
          else reject(new Error(`${method}: ${JSON.stringify(error)}`))
        })
        to.write(`${JSON.stringify({ id: sent, method, params, ...session })}\0`)
      })
    const { targetId } = await call("Target.createTarget", { url: "about:blank" })
    const { sessionId } = await call("Target.attachToTarget", { targetId, flatten: true })
    const inTab = (method: string, params?: Fields) => call(method, params, { sessionId })
    for (const domain of ["Page", "Runtime", "Log"]) await inTab(`${domain}.enable`)
    return { child, inTab, problems, profile }
  }),
  ({ child, profile }) =>
    Effect.promise(async () => {
      child.kill("SIGKILL")
      await once(child, "exit")
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
    })
)

const browse = Effect.map(openBrowser, ({ inTab, problems }) => {
  const perform = (method: string, params?: Fields) => Effect.promise(() => inTab(method, params))
  /** The value of an expression, which may be a promise. */
  const value = (expression: string) =>
    Effect.map(perform("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true }), (answer) => {
      assert.notProperty(answer, "exceptionDetails", expression)
      return (answer["result"] as Fields)["value"]
    })
  const shows = (condition: string) =>
    value(`new Promise((resolve) => {
      const look = () => (${condition}) ? resolve(true) : setTimeout(look, 50)
      look()
    })`).pipe(Effect.timeout("20 seconds"), Effect.catchAll(() => Effect.die(new Error(`never: ${condition}`))))
  const open = (url: string) =>
    Effect.zipRight(
      perform("Page.navigate", { url }),
      shows(`location.href === "${url}" && document.readyState === "complete"`)
    )
  const press = (key: string) =>
    Effect.forEach(
      ["keyDown", "keyUp"],
      (type) =>
        perform("Input.dispatchKeyEvent", {
          type,
          key,
          code: key,
          text: key === "Enter" ? "\r" : "",
          windowsVirtualKeyCode: { Tab: 9, Enter: 13 }[key]
        })
    )
  const size = (width: number, height: number, scheme = "light") =>
    Effect.all([
      perform("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false }),
      perform("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] })
    ])
  const picture = (path: string) =>
    Effect.map(
      perform("Page.captureScreenshot"),
      ({ data }) => writeFileSync(path, Buffer.from(String(data), "base64"))
    )
  return { open, perform, picture, press, problems, shows, size, value }
})

/** Ten minutes with several tokens, by a clock that this moves. */
const busy = Effect.gen(function*() {
  let behind = 8.5 * 60_000
  const clock = Clock.make()
  const now = () => clock.unsafeCurrentTimeMillis() - behind
  const past = { unsafeCurrentTimeMillis: now, currentTimeMillis: Effect.sync(now) }
  const emulator = yield* Emulator.make({ port: 4010, steering: true, tokenLife: "4 minutes" }).pipe(
    Effect.withClock(Object.assign(Clock.make(), past))
  )
  const { url } = emulator
  let token = ""
  type Step = readonly [minutes: number, step: () => Effect.Effect<unknown, Error>]
  const steps: Array<Step> = [
    [8.4, () => askToken(url, { body: "" })],
    ...[8.2, 4.6, 3.1, 0.5].map((at): Step => [at, () => Effect.map(getToken(url), (issued) => void (token = issued))]),
    ...[8.1, 7.6, 7.5, 6.8, 6.1, 5.2, 4.5, 4.1, 3.6, 2.9, 2.4, 2.3, 1.6, 0.4, 0.2].map((at): Step => [
      at,
      () => callApi(url, token, { path: at === 0.4 ? "/stores/12/stock" : `/orders?page=${Math.ceil(at)}` })
    ]),
    [3.3, () => Effect.zipRight(steer(url, "revoke", { argument: "2" }), callApi(url, token))],
    [1.7, () => emulator.fail("api/403", 1)],
    [0.9, () => emulator.fail("token/503-nothing", 2)],
    [0.8, () => Effect.all([askToken(url), askToken(url)])],
    [0.1, () => emulator.fail("api/401-once", 3)]
  ]
  for (const [minutes, step] of steps.sort(([one], [other]) => other - one)) {
    behind = minutes * 60_000
    yield* step()
  }
  behind = 0
  return emulator
})

const isLeftOut = chromium === undefined && process.env["CI"] !== "true"

describe.skipIf(isLeftOut)("the page", () => {
  test.live("shows tokens and requests, and makes faults and revokes with its buttons and the keyboard", function*() {
    const { pendingFaults, url } = yield* Emulator.make({ steering: true })
    const { open, perform, press, problems, shows, size, value } = yield* browse
    yield* size(360, 780)
    yield* open(`${url}/_emulator/`)
    yield* shows("document.querySelector('#live').textContent === 'live'")
    assert.include(yield* value("document.querySelector('#empty').innerText"), "curl -d ")
    const token = yield* getToken(url)
    yield* callApi(url, token, { path: "/orders/7" })
    yield* shows("document.querySelector('[role=img]')?.ariaLabel.endsWith(', 2 requests')")
    assert.match(
      String(yield* value("document.querySelector('[role=img]').ariaLabel")),
      /^Token 1 of demo-client, issued/
    )
    assert.match(String(yield* value("document.querySelector('#requests').innerText")), /GET \/orders\/7\s+200\s+#1/)

    yield* shows("document.querySelector('#scenario').value === 'token/503-nothing'")
    yield* value("document.querySelector('#times').value = 2; document.querySelector('#fail button').click()")
    yield* shows("document.querySelector('#faults').innerText === 'token/503-nothing × 2'")
    deepStrictEqual([(yield* askToken(url)).status, (yield* pendingFaults).length], [503, 1])
    yield* value("document.querySelector('#clear').click()")
    yield* shows("document.querySelector('#faults').innerText === ''")

    yield* value("document.querySelector('#spans button').focus()")
    for (const key of ["Tab", "Tab", "Tab", "Tab", "Enter"]) yield* press(key)
    yield* shows("document.querySelector('.row').classList.contains('revoked')")
    assert.strictEqual((yield* callApi(url, token)).status, 401)
    yield* shows("document.querySelector('#requests').innerText.includes('was revoked')")

    assert.isFalse(yield* value("document.documentElement.scrollWidth > 360"))
    assert.notInclude(String(yield* value("document.documentElement.outerHTML")), token)
    const { nodes } = yield* perform("Accessibility.getFullAXTree")
    const named = (nodes as ReadonlyArray<{ role?: { value: string }; name?: { value: string } }>)
      .filter(({ role }) =>
        ["button", "combobox", "spinbutton", "image", "table", "region"].includes(role?.value ?? "")
      )
    assert.isAbove(named.length, 8)
    for (const { name, role } of named) assert.isNotEmpty(name?.value, role?.value)
    deepStrictEqual(problems, [])
  })

  /** What a page can try, from its own origin. The policy of our own page stops its form. */
  const attempts = (url: string, withForm = true) => `
    (async () => {
      const url = ${JSON.stringify(url)}, type = "application/json", body = '{"argument":"api/403"}'
      const send = (options) => fetch(url + "fail", { method: "POST", body, ...options }).then(() => 1, () => 0)
      await send({ headers: { "content-type": type } })
      await send({ mode: "no-cors", headers: { "content-type": "text/plain" } })
      await send({ mode: "no-cors", body: new Blob([body], { type }) })
      navigator.sendBeacon(url + "fail", new Blob([body], { type }))
      const frame = Object.assign(document.createElement("iframe"), { name: "there" })
      document.body.append(frame)
      const form = document.body.appendChild(document.createElement("form"))
      Object.assign(form, { method: "post", action: url + "fail", target: "there", enctype: "text/plain" })
      const input = form.appendChild(document.createElement("input"))
      Object.assign(input, { name: body.slice(0, -1) + ',"x":"', value: '"}' })
      if (${withForm}) await new Promise((resolve) => { frame.onload = resolve; form.submit() })
      return fetch(url).then((response) => response.status, () => "not readable")
    })()`

  test.live("steers only from its own origin: not from another page, a name that points here, or a form", function*() {
    const { pendingFaults, url } = yield* Emulator.make({ steering: true })
    const { open, value } = yield* browse
    const foreign = yield* Effect.acquireRelease(
      Effect.promise(async () => {
        const server = Http.createServer((_, response) => response.setHeader("Content-Type", "text/html").end("<body>"))
        await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
        return server
      }),
      (server) => Effect.sync(() => server.closeAllConnections())
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
    // Control: the first attempt succeeds from the page of the emulator.
    yield* open(`http://localhost:${own}/_emulator/`)
    assert.strictEqual(yield* value(attempts("/_emulator/", false)), 200)
    assert.isNotEmpty(yield* pendingFaults)
  })

  test.live.runIf(process.env["STORE_API_PICTURE"] !== undefined)("is drawn by npm run picture", function*() {
    const folder = process.env["STORE_API_PICTURE"] ?? ""
    const { url } = yield* busy
    const { open, picture, shows, size } = yield* browse
    yield* open(`${url}/_emulator/`)
    yield* shows("document.querySelectorAll('.row').length > 3 && document.querySelector('#expected').innerText !== ''")
    yield* size(920, 860)
    yield* picture(join(folder, "emulator-page.png"))
    for (
      const [name, width, scheme] of [["dark", 920, "dark"], ["phone", 360, "light"], [
        "phone-dark",
        360,
        "dark"
      ]] as const
    ) {
      if (folder.startsWith("docs")) continue
      yield* size(width, 1400, scheme)
      yield* picture(join(folder, `${name}.png`))
    }
  })
})

describe("the requests by which the page steers", () => {
  test.live("are refused for a foreign Host, Origin or site, for content that a form can send, and unless asked for", function*() {
    const { pendingFaults, requests, url } = yield* Emulator.make({ steering: true })
    const { host } = new URL(url)
    const statusOf = (headers: Http.OutgoingHttpHeaders) =>
      Effect.map(steer(url, "fail", { argument: "api/403" }, headers), ({ status, text }) => {
        assert.isNotEmpty((JSON.parse(text) as Fields)["message"])
        return status
      })
    for (const name of ["evil.example", "127.0.0.1", "localhost:1", "127.0.0.1.evil.example"]) {
      assert.strictEqual(
        yield* statusOf({ Host: name.includes(".ev") ? `${name}:${new URL(url).port}` : name }),
        403,
        name
      )
    }
    for (const origin of ["http://evil.example", "null", `https://${host}`, "http://127.0.0.1"]) {
      assert.strictEqual(yield* statusOf({ Origin: origin }), 403, origin)
    }
    for (const site of ["cross-site", "same-site"]) {
      assert.strictEqual(yield* statusOf({ "Sec-Fetch-Site": site }), 403, site)
    }
    for (
      const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json"]
    ) {
      assert.strictEqual(yield* statusOf({ "Content-Type": type }), 415, type)
    }
    for (
      const body of [{ argument: "canary" }, { argument: "token/tls-expired" }, { argument: "api/403", times: "0" }, []]
    ) {
      assert.strictEqual((yield* steer(url, "fail", body)).status, 400)
    }
    for (const path of ["fail", "nothing"]) {
      assert.strictEqual((yield* send(url, { path: `/_emulator/${path}`, headers: { Host: host } })).status, 404)
    }
    for (const path of ["", "events"]) {
      assert.strictEqual(
        (yield* send(url, { path: `/_emulator/${path}`, headers: { Host: "evil.example" } })).status,
        403
      )
    }
    deepStrictEqual([yield* pendingFaults, yield* requests], [[], []])
    assert.strictEqual(yield* statusOf({ Host: host, Origin: url, "Sec-Fetch-Site": "same-origin" }), 200)
    assert.lengthOf(yield* pendingFaults, 1)
    const without = yield* Emulator.make()
    assert.strictEqual((yield* steer(without.url, "fail", { argument: "api/403" })).status, 401)
    assert.lengthOf(yield* without.requests, 1)
  })

  test.live("reach an emulator whose connections fail or use TLS, and disturb no fault", function*() {
    for (const tls of [false, true]) {
      const { pendingFaults, url } = yield* Emulator.make({ steering: true, tls })
      const plain = url.replace("https", "http")
      assert.strictEqual((yield* steer(plain, "fail", { argument: "token/reset-on-accept", times: "1" })).status, 200)
      deepStrictEqual((yield* pendingFaults).map(({ scenario }) => scenario), ["token/reset-on-accept"])
      yield* Effect.flip(send(plain, { path: "/orders" }))
      deepStrictEqual(yield* pendingFaults, [])
    }
  })
})
