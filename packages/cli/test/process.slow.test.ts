/** Features that only a process has: signals, exit codes, closed pipes, a real terminal and trusted certificates. */
import { once } from "node:events"
import { mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs"
import * as Https from "node:https"
import * as Net from "node:net"
import { join } from "node:path"
import { assert, beforeAll, describe } from "@effect/vitest"
import { deepStrictEqual } from "@effect/vitest/utils"
import { Fault } from "@store-api/emulator"
import { selfSigned } from "@store-api/testing/certificates"
import { byName, listen, startProxy, startTlsStore } from "@store-api/testing/loopback"
import { until } from "@store-api/testing/network"
import { test } from "@store-api/testing/test"
import { Effect, Record } from "effect"
import {
  check,
  demoSecret,
  expectFailedStep,
  lastToken,
  newUser,
  profilesOf,
  run,
  started,
  startedWith,
  variablesIn,
  withEnv,
  without
} from "./support/cli.js"
import {
  alias,
  build,
  hasTerminals,
  runProcess,
  runWith,
  startProcess
} from "./support/process.js"
import { endless, tooMuch } from "./support/servers.js"

beforeAll(build)

const shows = { shows: true }

/** Starts `store-api-emulator`; `variables` are those that it prints. */
const emulatorWith = (args: ReadonlyArray<string>, env = {}) =>
  Effect.gen(function*() {
    const running = yield* startProcess(yield* newUser(env), args, {
      ...shows,
      program: alias
    })
    yield* running.shows(/\n\n.*\n\n/s)
    return { running, variables: variablesIn(running.stdout()) }
  })

test.live("the binary fails with the same message as the command in process", function*() {
  const user = without((yield* started).user, "STORE_API_CLIENT_ID")
  const inProcess = yield* run(user, ["token"])
  assert.strictEqual(inProcess.code, 3)
  deepStrictEqual(yield* runProcess(user, ["token"]), inProcess)
})

/** The lines of a profile for this user, and the user without these variables. */
const inFile = Effect.map(started, ({ user }) => {
  const lines = Object.entries(user.env).filter(([name]) => name.startsWith("STORE_API_"))
  return {
    text: lines.map(([name, value]) => `${name}=${value}`).join("\n"),
    user: without(user, ...lines.map(([name]) => name))
  }
})

test.live("the binary finds profiles by the variables of the process", function*() {
  const { text, user } = yield* inFile
  const profiles = profilesOf(user)
  mkdirSync(profiles, { recursive: true })
  writeFileSync(join(profiles, "books.env"), text, { mode: 0o600 })
  const { stdout } = yield* runProcess(user, ["status", "--profile", "books"])
  assert.match(stdout, /^profile {2}books\nfolder {3}.*\n$/)
})

test.live.runIf(process.platform !== "darwin")(
  "the binary finds the folder of tokens by the variables of the process",
  function*() {
    const { text, user } = yield* inFile
    writeFileSync(join(user.cwd, ".env"), text)
    const { stdout } = yield* runProcess(user, ["status"])
    assert.include(stdout, `folder   ${join(user.cwd, "state", "store-api")}`)
  }
)

/** The new profile and the message, with a folder of tokens in `.env`. */
const addFromDotenv = (...args: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const { text, user } = yield* inFile
    writeFileSync(join(user.cwd, ".env"), `${text}\nSTORE_API_TOKEN_FOLDER=theirs`)
    const { code, stderr } = yield* runProcess(user, ["profile", "add", "mine", ...args])
    assert.strictEqual(code, 0, stderr)
    return { saved: readFileSync(join(profilesOf(user), "mine.env"), "utf8"), stderr }
  })

test.live("profile add ignores the folder of tokens in a .env that nobody named", function*() {
  const { saved, stderr } = yield* addFromDotenv()
  assert.notInclude(saved, "STORE_API_TOKEN_FOLDER")
  assert.match(stderr, /mine\.env: all from \.env\. The/)
})

test.live("profile add saves the folder of tokens in a file of --dotenv, and says so", function*() {
  const { saved, stderr } = yield* addFromDotenv("--dotenv", ".env")
  assert.match(saved, /^STORE_API_TOKEN_FOLDER=.*theirs/m)
  assert.match(stderr, /: all from \.env; STORE_API_TOKEN_FOLDER from \.env\. The/)
})

test.live.each(
  [
    ["stderr", { STORE_API_CLIENT_SECRET: "another" }, 4],
    ["stdout", {}, 0]
  ] as const
)("if %s is closed, the run prints nothing else", function*([stream, env, code]) {
  const { child, end } = yield* startProcess(
    withEnv((yield* started).user, env),
    ["token"],
    shows
  )
  child[stream].destroy()
  deepStrictEqual(yield* end, { code, stdout: "", stderr: "" })
})

for (
  const args of [["completion", "fish"], ["emulator", "--list"]]
) {
  test.live.runIf(process.platform === "linux")(
    `a full disk behind stdout is one message of ${args[0]} with code 8`,
    function*() {
      const full = yield* runWith(yield* newUser({}), args, [
        "ignore",
        openSync("/dev/full", "w"),
        "pipe"
      ])
      deepStrictEqual(full, [8, "store-api: Cannot write to stdout.\n"])
    }
  )
}

test.live("a reader that goes away in the middle of a response ends the run with code 0", function*() {
  const { user } = yield* started
  const { beyond, url } = yield* endless()
  const { child, end } = yield* startProcess(withEnv(user, { STORE_API_URL: url }), [
    "call",
    "/"
  ])
  yield* beyond(tooMuch)
  child.stdout.destroy()
  const { code, stderr } = yield* end
  deepStrictEqual([code, stderr], [0, ""])
})

test.live.each([["--fail", 7], ["--include", 1]])(
  "a reader that goes away from an error of the API ends the run with its code: %s, %i",
  function*([flag, expected]) {
    const { user } = yield* started
    const { beyond, url } = yield* endless(500)
    const { child, end } = yield* startProcess(withEnv(user, { STORE_API_URL: url }), [
      "call",
      "/",
      flag
    ])
    yield* beyond(tooMuch)
    child.stdout.destroy()
    assert.strictEqual((yield* end).code, expected)
  }
)

const readsSecret = ["token", "--secret-file", "-"]

test.live("the secret is read from a pipe", function*() {
  const { user } = yield* started
  const { code } = yield* runProcess(user, readsSecret, { ...shows, stdin: demoSecret })
  assert.strictEqual(code, 0)
})

test.live("the secret is not read from a folder", function*() {
  const { user } = yield* started
  const [code, stderr] = yield* runWith(user, readsSecret, [
    openSync(user.cwd, "r"),
    "pipe",
    "pipe"
  ])
  assert.strictEqual(code, 3)
  assert.match(
    stderr,
    /^store-api: (--secret-file is empty: .*|Cannot read standard input, .*)\.\n$/
  )
})

const signals = [["SIGINT", 130], ["SIGTERM", 143]] as const

test.live.each(signals)("%s ends a call with code %i", function*([signal, code]) {
  const { emulator, user } = yield* startedWith({}, Fault.hang({ on: "api" }))
  const call = yield* startProcess(user, ["call", "/orders"])
  yield* until(
    "the API has the request",
    Effect.map(emulator.requests, (requests) => requests.some(({ kind }) => kind === "api"))
  )
  call.child.kill(signal)
  deepStrictEqual(yield* call.end, { code, stdout: "", stderr: "" })
})

test.live.each(signals)(
  "%s ends a check with code %i while a server is silent",
  function*([signal, code]) {
    const { port } = yield* listen(Net.createServer())
    const silent = withEnv((yield* started).user, {
      STORE_API_AUTH_URL: `https://127.0.0.1:${port}`
    })
    const check = yield* startProcess(silent, ["check"])
    yield* check.shows(/connection/)
    check.child.kill(signal)
    const outcome = yield* check.end
    deepStrictEqual([outcome.code, outcome.stderr], [code, ""])
    // It ended because of the signal, not of the time limit.
    assert.notInclude(outcome.stdout, "FAIL")
  }
)

test.live.each(signals)(
  "%s ends an emulator with code %i although a connection is open",
  function*([signal, code]) {
    const { running, variables } = yield* emulatorWith([])
    const { port } = new URL(variables["STORE_API_URL"] ?? "")
    const socket = Net.connect(Number(port), "127.0.0.1").on("error", () => undefined)
    yield* Effect.promise(() => once(socket, "connect"))
    running.child.kill(signal)
    const { stderr, ...outcome } = yield* running.end
    deepStrictEqual([outcome.code, stderr], [code, ""])
  }
)

test.live.each(["--help", "fail --help", "--port canary", "fial", "--list"])(
  "store-api-emulator %s does what store-api emulator does, under its own name",
  function*(line) {
    const user = yield* newUser({})
    const outcome = yield* runProcess(user, line.split(" "), { program: alias })
    const { code, ...texts } = yield* run(user, ["emulator", ...line.split(" ")])
    const renamed = Record.map(
      texts,
      (text) => text.replaceAll("store-api emulator", "store-api-emulator")
    )
    deepStrictEqual(outcome, { code, ...renamed })
  }
)

test.live(
  "store-api-emulator with a heap of 64 MB answers 2 000 requests of 60 kB, because it keeps no bodies",
  function*() {
    const { variables } = yield* emulatorWith([], { NODE_OPTIONS: "--max-old-space-size=64" })
    const url = `${variables["STORE_API_URL"] ?? ""}/v1/oauth/accesstoken`
    const headers = { "Content-Type": "application/x-www-form-urlencoded" }
    const form = "grant_type=client_credentials&client_id=demo-client&client_secret="
    const ask = Effect.promise(() =>
      fetch(url, { method: "POST", headers, body: form.padEnd(60_000, "x") })
    )
    const statuses = yield* Effect.all(
      Effect.replicate(Effect.map(ask, ({ status }) => status), 2000),
      {
        concurrency: 8
      }
    )
    deepStrictEqual([...new Set(statuses)], [401])
  },
  120_000
)

test.live.each<[program: string, code: number]>([["true", 0], ["exit 42", 42], [
  "kill -KILL $$",
  137
]])(
  "run gives a program the token with the input, until %s ends it with code %i",
  function*([program, code]) {
    const { emulator, user } = yield* started
    const line = ["run", "sh", "-c", `cat; echo $STORE_API_ACCESS_TOKEN; ${program}`]
    const outcome = yield* runProcess(user, line, { ...shows, stdin: "input " })
    deepStrictEqual(outcome, {
      code,
      stdout: `input ${yield* lastToken(emulator)}\n`,
      stderr: ""
    })
  }
)

test.live.each([["./nothing", "ENOENT"], ["/dev/null/x", "ENOTDIR"]] as const)(
  "run ends with code 127 if %s cannot be started (%s)",
  function*([program, why]) {
    const outcome = yield* runProcess((yield* started).user, ["run", "--", program])
    deepStrictEqual(outcome, {
      code: 127,
      stdout: "",
      stderr: `store-api: Cannot run ${program} (${why}).\n`
    })
  }
)

test.live.each(["SIGINT", "SIGTERM"] as const)(
  "run passes %s on to the program, which decides when it ends",
  function*(signal) {
    const { user } = yield* started
    const script = `trap 'echo ${signal}; exit 7' ${
      signal.slice(3)
    }; echo ready; while :; do sleep 0.1; done`
    const running = yield* startProcess(user, ["run", "--", "sh", "-c", script])
    yield* running.shows(/ready/)
    running.child.kill(signal)
    deepStrictEqual(yield* running.end, {
      code: 7,
      stdout: `ready\n${signal}\n`,
      stderr: ""
    })
  }
)

/** A user of an emulator with TLS, whose environment trusts its certificate. */
const withTls = Effect.flatMap(
  emulatorWith(["--tls"]),
  ({ variables }) => newUser(variables)
)

test.live("token trusts the certificate that store-api-emulator --tls names", function*() {
  const user = yield* withTls
  assert.match(user.env["STORE_API_AUTH_URL"] ?? "", /^https:/)
  assert.strictEqual((yield* runProcess(user, ["token"], shows)).code, 0)
})

test.live("check trusts the certificate that store-api-emulator --tls names", function*() {
  const { code, failed, steps } = yield* check(yield* withTls, [], runProcess)
  deepStrictEqual([code, failed], [0, []])
  assert.include(steps.map(({ name }) => name), "TLS")
})

test.live("without NODE_EXTRA_CA_CERTS, the certificate of the emulator is not trusted", function*() {
  const distrusting = without(yield* withTls, "NODE_EXTRA_CA_CERTS")
  assert.strictEqual((yield* runProcess(distrusting, ["token"])).code, 4)
})

/** A user of a proxy over TLS, which trusts the certificates of `ca`. */
const behindTlsProxy = (ca: (certificates: { proxy: string; store: string }) => string) =>
  Effect.gen(function*() {
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
    writeFileSync(caFile, ca({ proxy: ofProxy.cert, store: ofStore.cert }))
    return withEnv(user, { NODE_EXTRA_CA_CERTS: caFile })
  })

test.live("NODE_EXTRA_CA_CERTS applies to a proxy over TLS", function*() {
  const user = yield* behindTlsProxy(({ proxy, store }) => proxy + store)
  const { code, failed, steps } = yield* check(user, [], runProcess)
  deepStrictEqual([code, failed], [0, []])
  assert.includeMembers(steps.map(({ name }) => name), [
    "proxy tunnel",
    "TLS",
    "token request"
  ])
})

test.live("NODE_TLS_REJECT_UNAUTHORIZED does not apply to a proxy over TLS", function*() {
  const careless = withEnv(yield* behindTlsProxy(({ store }) => store), {
    NODE_TLS_REJECT_UNAUTHORIZED: "0",
    NODE_NO_WARNINGS: "1"
  })
  yield* expectFailedStep(
    careless,
    [],
    [5, "proxy tunnel", /SELF_SIGNED/, /HTTPS_PROXY/],
    runProcess
  )
})

describe.skipIf(!hasTerminals)("the binary on a terminal", () => {
  const terminal = { ...shows, terminal: true }

  /** Answers the question for the secret with these keys. */
  const answer = (keys: string) =>
    Effect.gen(function*() {
      const { emulator, user: withSecret } = yield* started
      const user = without(withSecret, "STORE_API_CLIENT_SECRET")
      const { end, shows, type } = yield* startProcess(user, ["token", ">stdout"], terminal)
      yield* shows(/Client secret/)
      yield* type(keys)
      const outcome = yield* end
      // The shell goes on in a line of its own.
      assert.match(outcome.stdout, /^Client secret \(not shown\): (\r\n)+$/)
      return {
        code: outcome.code,
        emulator,
        printed: readFileSync(join(user.cwd, "stdout"), "utf8")
      }
    })

  test.live("the question for the secret shows nothing of what is typed", function*() {
    const { code, emulator, printed } = yield* answer(`${demoSecret}\r`)
    deepStrictEqual([code, printed], [0, `${yield* lastToken(emulator)}\n`])
  })

  test.live("Ctrl+C in the question for the secret ends the run with code 130", function*() {
    const { code, printed } = yield* answer("\u0003")
    deepStrictEqual([code, printed], [130, ""])
  })

  test.live("a terminal takes all answers that are pasted at once, and does not show the secret", function*() {
    const { emulator, user: withSettings } = yield* started
    const names = Object.keys(withSettings.env).filter((name) => name.startsWith("STORE_API_"))
    const user = without(withSettings, ...names)
    const { end, shows, type } = yield* startProcess(user, ["profile", "add"], terminal)
    yield* shows(/URL of the token service/)
    yield* type(`${emulator.url}\r\rdemo-client\r${demoSecret}\r`)
    const { code, stdout } = yield* end
    assert.strictEqual(code, 0, stdout)
    assert.match(stdout, /Client id: .*demo-client/)
    assert.notInclude(stdout, demoSecret)
  })

  /** A call to an API that never responds, once the terminal shows its name. */
  const slowCall = Effect.gen(function*() {
    const { user } = yield* startedWith({}, Fault.hang({ on: "api" }))
    const running = yield* startProcess(user, ["call", "/orders"], terminal)
    yield* running.shows(
      /store-api: Waiting for GET http:.*\/orders\. Press Ctrl\+C to stop\.\r\n/
    )
    return running
  })

  test.live("the terminal shows the name of a slow request", function*() {
    yield* slowCall
  })

  test.live("Ctrl+C during a slow request leaves the shell on a line of its own", function*() {
    const { end, type } = yield* slowCall
    yield* type("\u0003")
    deepStrictEqual(yield* end, { code: 130, stdout: "^C\r\n", stderr: "" })
  })
})
