/** Features that only a process has: signals, exit codes, closed pipes, process variables and trusted certificates. */
import { spawnSync } from "node:child_process"
import { once } from "node:events"
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import * as Http from "node:http"
import * as Https from "node:https"
import * as Net from "node:net"
import { join } from "node:path"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Emulator, Fault } from "@store-api/emulator"
import { Effect, Option } from "effect"
import { test } from "../../core/test/support/test.js"
import { selfSigned } from "../../platform-node/test/support/certificates.js"
import { byName, startProxy, startTlsStore } from "../../platform-node/test/utils.js"
import { check, fails } from "./support/checking.js"
import { run } from "./support/cli.js"
import { endless, listening, tooMuch } from "./support/listening.js"
import {
  bin,
  build,
  processTimeout,
  type RunningProcess,
  runProcess,
  runWithInput,
  startProcess
} from "./support/process.js"
import { lastTokenOf, servers, userOfServer } from "./support/servers.js"
import {
  demoSecret,
  newUser,
  profilesOf,
  started,
  startedWith,
  type User,
  userOf,
  variablesIn,
  withEnv,
  without
} from "./support/user.js"

beforeAll(build, 120_000)

const shows = { shows: true }

/** Waits until standard output contains it. */
const shown = ({ child, stdout }: RunningProcess, text: RegExp) =>
  Effect.promise(async () => {
    while (!text.test(stdout())) await once(child.stdout, "data")
  })

/** The resident memory of a process in bytes. */
const memoryOf = ({ child }: RunningProcess) => {
  const [, kibibytes = ""] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8")) ?? []
  return Number(kibibytes) * 1024
}

describe.runIf(process.platform === "linux")("store-api emulator, for long", () => {
  test.live(
    "remembers no request: of 20 000 of 60 kB, the second half costs less than 100 MB",
    function*() {
      const running = yield* startProcess(yield* newUser({}), ["emulator"], shows)
      yield* shown(running, /CLIENT_SECRET/)
      const [, url = ""] = /AUTH_URL='(.*)'/.exec(running.stdout()) ?? []
      const body = new Uint8Array(60_000).fill(97)
      const agent = new Http.Agent({ keepAlive: true })
      const post = Effect.async<void>((resume) => {
        Http.request(
          `${url}/v1/oauth/accesstoken`,
          { method: "POST", agent },
          (response) => response.resume().on("end", () => resume(Effect.void))
        ).end(body)
      })
      const send = (requests: number) =>
        Effect.all(Effect.replicate(post, requests), { concurrency: 16, discard: true })
      // Node first grows its heap; the half that it would remember is 600 MB.
      yield* send(10_000)
      const before = memoryOf(running)
      yield* send(10_000)
      assert.isAbove(
        running.stdout().split("\n").filter((line) => line.includes(" POST /v1")).length,
        19_900
      )
      assert.isBelow(memoryOf(running) - before, 100e6)
    },
    120_000
  )
})

describe("the binary", { timeout: processTimeout }, () => {
  test.live("fails with the same message and exit code as the command in process", function*() {
    const user = without((yield* started).user, "STORE_API_CLIENT_ID")
    const inProcess = yield* run(user, ["token"])
    assert.strictEqual(inProcess.code, 3)
    deepStrictEqual(yield* runProcess(user, ["token"]), inProcess)
  })

  test.live("acquires a token, keeps it, calls with it, and finds nothing wrong", function*() {
    const server = yield* servers["oidc-provider"]
    const user = yield* userOfServer(server)
    const token = yield* runProcess(user, ["token"], shows)
    deepStrictEqual(token, { code: 0, stderr: "", stdout: `${yield* lastTokenOf(server)}\n` })
    assert.match(token.stdout, /^[\w-]{20,}\n$/)
    deepStrictEqual(yield* runProcess(user, ["call", "/orders", "--fail"]), {
      code: 0,
      stdout: server.orders,
      stderr: ""
    })
    assert.match((yield* runProcess(user, ["status"])).stdout, /valid for \d+ min/)
    assert.strictEqual(yield* server.tokenRequests, 1)
    const { code, failed } = yield* check(user, ["/orders"], runProcess)
    deepStrictEqual([code, failed], [0, []])
  })

  test.live("finds folders by the variables of the process, and files by the current folder", function*() {
    const { user } = yield* started
    const profiles = profilesOf(user)
    mkdirSync(profiles, { recursive: true })
    const lines = Object.entries(user.env).filter(([name]) => name.startsWith("STORE_API_"))
    const text = lines.map(([name, value]) => `${name}=${value}`).join("\n")
    writeFileSync(join(profiles, "books.env"), text, { mode: 0o600 })
    writeFileSync(join(user.cwd, ".env"), text)
    const alone = without(user, ...lines.map(([name]) => name))
    const profile = yield* runProcess(alone, ["status", "--profile", "books"])
    assert.match(profile.stdout, /^profile {2}books\nfolder {3}.*\n$/)
    const { stdout } = yield* runProcess(alone, ["status"])
    if (process.platform !== "darwin") assert.include(stdout, `folder   ${join(user.cwd, "state", "store-api")}`)
  })

  test.live("shares one token among five runs at once", function*() {
    const { emulator, user } = yield* started
    const runs = Effect.replicate(runProcess(user, ["token"], shows), 5)
    const outcomes = yield* Effect.all(runs, { concurrency: "unbounded" })
    deepStrictEqual(new Set(outcomes.map(({ code, stderr }) => `${String(code)} ${stderr}`)), new Set(["0 "]))
    assert.strictEqual(new Set(outcomes.map(({ stdout }) => stdout)).size, 1)
    assert.lengthOf(yield* emulator.requests, 1)
  })
})

describe("pipes", { timeout: processTimeout }, () => {
  test.live("a closed standard error does not change the exit code of a failure", function*() {
    const { user } = yield* started
    const wrong = withEnv(user, { STORE_API_CLIENT_SECRET: "another-invented-secret" })
    const { child, end } = yield* startProcess(wrong, ["token"])
    child.stderr.destroy()
    const { code, stdout } = yield* end
    deepStrictEqual([code, stdout], [4, ""])
  })

  test.live("a closed standard output ends the run with code 0 and no message", function*() {
    const { user } = yield* started
    const { child, end } = yield* startProcess(user, ["token"], shows)
    child.stdout.destroy()
    const { code, stderr } = yield* end
    deepStrictEqual([code, stderr], [0, ""])
  })

  it.scopedLive.runIf(process.platform === "linux")(
    "a full disk behind standard output is one line, and code 1",
    () =>
      Effect.gen(function*() {
        const full = openSync("/dev/full", "w")
        const { env } = yield* newUser({})
        const { status, stderr } = spawnSync(process.execPath, [bin, "completion", "bash"], {
          env,
          encoding: "utf8",
          stdio: ["ignore", full, "pipe"]
        })
        closeSync(full)
        deepStrictEqual([status, stderr], [1, "store-api: Cannot write to stdout.\n"])
      })
  )

  test.live("a reader that goes away in the middle of a response ends the run with code 0", function*() {
    const { user } = yield* started
    const { beyond, url } = yield* endless
    const { child, end } = yield* startProcess(withEnv(user, { STORE_API_URL: url }), ["call", "/"])
    yield* beyond(tooMuch)
    child.stdout.destroy()
    const { code, stderr } = yield* end
    deepStrictEqual([code, stderr], [0, ""])
  })

  test.live("the secret is read from a pipe, and not from a folder", function*() {
    const { user } = yield* started
    const given = { ...shows, stdin: demoSecret }
    deepStrictEqual((yield* runProcess(user, ["token", "--secret-file", "-"], given)).code, 0)
    const folder = yield* runWithInput(user, ["token", "--secret-file", "-"], user.cwd)
    assert.strictEqual(folder.code, 3)
    assert.match(
      folder.stderr,
      /^store-api: (Standard input, the file of --secret-file, is empty|Cannot read standard input, .*)\.\n$/
    )
  })

  test.live("a cached token or cooldown that is a pipe without a writer is ignored, and replaced", function*() {
    const { emulator, user } = yield* started
    for (
      const [fault, code] of [[Option.none(), 0], [Option.some(Fault.status(401, { times: Infinity })), 4]] as const
    ) {
      yield* Effect.transposeMapOption(fault, emulator.fail)
      const line = ["token", "--cache-dir", join(user.cwd, String(code))]
      const first = yield* runProcess(user, line, shows)
      const folder = join(user.cwd, String(code), "store-api-v1")
      const entry = join(folder, ...readdirSync(folder))
      rmSync(entry)
      assert.strictEqual(spawnSync("mkfifo", [entry]).status, 0)
      const second = yield* runProcess(user, line, shows)
      deepStrictEqual([second.code, second.stderr], [code, first.stderr])
      assert.isTrue(statSync(entry).isFile())
    }
  })
})

describe("signals", { timeout: processTimeout }, () => {
  it.scopedLive.each(
    [["SIGINT", 130], ["SIGTERM", 143]] as const
  )("%s ends a call with code %i, and a check while a server is silent", ([signal, code]) =>
    Effect.gen(function*() {
      const { emulator, user } = yield* startedWith({}, Fault.hang({ on: "api" }))
      const call = yield* startProcess(user, ["call", "/orders"])
      while (!(yield* emulator.requests).some(({ kind }) => kind === "api")) yield* Effect.sleep("20 millis")
      call.child.kill(signal)
      deepStrictEqual(yield* call.end, { code, stdout: "", stderr: "" })
      const port = yield* listening(Net.createServer((socket) => void socket.on("error", () => undefined)))
      const silent = withEnv(user, { STORE_API_AUTH_URL: `https://127.0.0.1:${port}` })
      const check = yield* startProcess(silent, ["check"])
      yield* shown(check, /connection/)
      check.child.kill(signal)
      const outcome = yield* check.end
      deepStrictEqual([outcome.code, outcome.stderr], [code, ""])
      // It ended because of the signal, not of the time limit.
      assert.notInclude(outcome.stdout, "FAIL")
    }))

  test.live("SIGINT ends an emulator with code 130; Node accepts its files, new and empty", function*() {
    const { end, running, user } = yield* emulatorWith(["--dotenv", "new.env", "--env-file", "empty.env"])
    for (const name of ["new.env", "empty.env"]) {
      assert.include(readFileSync(join(user.cwd, name), "utf8"), "STORE_API_AUTH_URL=")
    }
    running.child.kill("SIGINT")
    const { code, stderr } = yield* end
    deepStrictEqual([code, stderr], [130, ""])
  })
})

/** Starts an emulator in a folder with an empty file; `variables` are those that it prints. */
const emulatorWith = (args: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const user = yield* newUser({})
    writeFileSync(join(user.cwd, "empty.env"), "")
    const running = yield* startProcess(user, ["emulator", ...args], shows)
    yield* shown(running, /\n\n.*\n\n/s)
    return { running, user, end: running.end, variables: variablesIn(running.stdout()) }
  })

describe("NODE_EXTRA_CA_CERTS", { timeout: processTimeout }, () => {
  test.live("is trusted by store-api check", function*() {
    const emulator = yield* Emulator.make({ tls: true })
    const user = yield* userOf(emulator)
    const caFile = join(user.cwd, "ca.pem")
    writeFileSync(caFile, Option.getOrThrow(emulator.ca))
    const { code, failed, steps } = yield* check(withEnv(user, { NODE_EXTRA_CA_CERTS: caFile }), [], runProcess)
    deepStrictEqual([code, failed], [0, []])
    assert.include(steps.map(({ name }) => name), "TLS")
  })

  test.live("is trusted for a proxy over TLS, whose certificate has the name of the proxy", function*() {
    const name = "auth.store.example"
    const [ofProxy, ofStore] = [yield* selfSigned("localhost"), yield* selfSigned(name)]
    const store = yield* startTlsStore(ofStore)
    const proxy = yield* startProxy(Https.createServer(ofProxy), "https")
    const user = yield* newUser({
      STORE_API_AUTH_URL: byName(store, name),
      STORE_API_CLIENT_ID: "demo-client",
      STORE_API_CLIENT_SECRET: demoSecret,
      HTTPS_PROXY: proxy.url
    })
    const caFile = join(user.cwd, "ca.pem")
    writeFileSync(caFile, ofProxy.cert + ofStore.cert)
    const trusting = withEnv(user, { NODE_EXTRA_CA_CERTS: caFile })
    const { code, failed, steps } = yield* check(trusting, [], runProcess)
    deepStrictEqual([code, failed], [0, []])
    assert.includeMembers(steps.map(({ name }) => name), ["proxy tunnel", "TLS", "token request"])
    writeFileSync(caFile, ofStore.cert)
    const expected = [5, "proxy tunnel", /SELF_SIGNED/, /HTTPS_PROXY/] as const
    const careless = withEnv(trusting, { NODE_TLS_REJECT_UNAUTHORIZED: "0", NODE_NO_WARNINGS: "1" })
    yield* fails(careless, [], expected, runProcess)
  })

  test.live("is printed by store-api emulator --tls, and a run with it trusts the emulator", function*() {
    const { variables } = yield* emulatorWith(["--tls"])
    const user = yield* newUser(variables)
    assert.match(variables["STORE_API_AUTH_URL"] ?? "", /^https:/)
    deepStrictEqual((yield* runProcess(user, ["token"], shows)).code, 0)
    const distrusting = without(user, "NODE_EXTRA_CA_CERTS")
    deepStrictEqual((yield* runProcess(distrusting, ["token", "--no-cache"])).code, 4)
  })
})

describe("store-api token with a stored token", { timeout: processTimeout }, () => {
  const hooks = new URL("./support/listModules.mjs", import.meta.url).href

  /** The modules that a run loads. */
  const modulesOf = (user: User, args: ReadonlyArray<string>) =>
    Effect.gen(function*() {
      const list = join(user.cwd, "modules")
      const watched = withEnv(user, { LIST_OF_MODULES: list })
      const { code } = yield* runProcess(watched, args, { shows: true, node: ["--import", hooks] })
      assert.strictEqual(code, 0)
      return readFileSync(list, "utf8")
    })

  /** Modules that take long to load, and are needed only for a request, a prompt or the emulator. */
  const heavy =
    /\/undici\/|\/TokenEndpoint\.js|\/AccessTokenProvider\.js|\/NodeHttpClient\.js|\/HttpClient\.js|\/NodeTerminal\.js|\/emulator\//g

  test.live("loads no HTTP client, no provider and no emulator", function*() {
    const { user } = yield* started
    const miss = yield* modulesOf(user, ["token"])
    const hit = yield* modulesOf(user, ["token", "--format", "json"])
    const scenarios = yield* modulesOf(user, ["emulator", "--list"])
    const found = (list: string) => [...new Set(list.match(heavy))].map((name) => name.replaceAll("/", "")).sort()
    deepStrictEqual(found(hit), [])
    assert.include(hit, "/FileTokenStore.js")
    assert.includeMembers(found(miss), ["AccessTokenProvider.js", "TokenEndpoint.js", "undici"])
    assert.includeMembers(found(scenarios), ["emulator"])
  })
})
