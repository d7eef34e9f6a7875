import { FastCheck } from "effect"
import { beforeEach } from "vitest"
import { slow } from "./files.mjs"

// Properties draw the same examples in each run: a mutant is killed by a test, not by luck.
FastCheck.configureGlobal({ ...FastCheck.readConfigureGlobal(), seed: 1 })

beforeEach(({ skip, task }) => {
  if (slow.some((words) => task.name.includes(words))) skip()
})
