/** A server of Redis whose replies a test decides: a sentinel, a node of a cluster, or one that falls silent. */
import { createServer } from "node:net"
import { Effect, type Scope } from "effect"
import { listen } from "../../../platform-node/test/utils.js"

/** An error becomes an error reply. */
export type Reply = string | number | null | Error | ReadonlyArray<Reply>

export interface Played {
  readonly port: number
  /** The number of connections so far, and of open ones. */
  readonly opened: () => number
  readonly open: () => number
  /** The commands so far, each with the number of its connection. */
  readonly commands: ReadonlyArray<{ readonly words: ReadonlyArray<string>; readonly connection: number }>
}

const encoded = (reply: Reply): string =>
  reply === null
    ? "_\r\n"
    : typeof reply === "string"
    ? `$${reply.length}\r\n${reply}\r\n`
    : typeof reply === "number"
    ? `:${reply}\r\n`
    : reply instanceof Error
    ? `-${reply.message}\r\n`
    : `*${reply.length}\r\n${reply.map(encoded).join("")}`

/** Starts a server. It does not respond to a command without a reply, except to those with which a client starts. */
export const playedServer = (
  replyTo: (
    words: ReadonlyArray<string>,
    connection: number,
    close: () => void
  ) => Reply | undefined | Promise<Reply | undefined>
): Effect.Effect<Played, never, Scope.Scope> =>
  Effect.suspend(() => {
    const commands: Array<Played["commands"][number]> = []
    let count = 0
    const server = createServer((socket) => {
      const connection = ++count
      let words: Array<string> = []
      let missing = 0
      let rest = ""
      socket.setEncoding("latin1").on("data", (chunk) => {
        const lines = (rest + String(chunk)).split("\r\n")
        rest = lines.pop() ?? ""
        for (const line of lines) {
          // A command is `*2`, `$3`, `GET`, `$3`, `key`. No word of the tests starts with `*` or `$`.
          if (line.startsWith("*")) missing = Number(line.slice(1))
          else if (!line.startsWith("$")) words.push(line)
          if (words.length < missing) continue
          commands.push({ words, connection })
          const greeting = words[0] === "HELLO" || words[0] === "CLIENT" ? "OK" : undefined
          void Promise.resolve(replyTo(words, connection, () => socket.destroy())).then((reply = greeting) => {
            if (reply !== undefined) socket.write(encoded(reply))
          })
          words = []
        }
      })
    })
    return Effect.map(listen(server), ({ open, opened, port }) => ({ commands, open, opened, port }))
  })
