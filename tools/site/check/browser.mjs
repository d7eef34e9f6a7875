/** A real Chromium, that of the machine: nothing is downloaded. */
import { accessSync, constants } from "node:fs"
import { delimiter, join } from "node:path"
import { chromium } from "playwright-core"

const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]

const isProgram = (path) => {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The path of the browser, if there is one. */
export const findBrowser = () =>
  (process.env.PATH ?? "").split(delimiter)
    .flatMap((folder) => names.map((name) => join(folder, name)))
    .find(isProgram)

export const launch = (executablePath) =>
  chromium.launch({
    executablePath,
    // Whatever a page or the browser itself may ask for, only this machine is there.
    args: ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
  })
