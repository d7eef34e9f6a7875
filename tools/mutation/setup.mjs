import { FastCheck } from "effect"
import { beforeEach } from "vitest"
import { slow } from "./files.mjs"

// Properties use the same examples in each run, so that no mutant is found by chance.
FastCheck.configureGlobal({ ...FastCheck.readConfigureGlobal(), seed: 1 })

beforeEach(({ skip, task }) => {
  if (slow.some((words) => task.name.includes(words))) skip()
})
