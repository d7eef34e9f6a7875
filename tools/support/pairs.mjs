/** The pages show the code for Effect 4, which is generated, before each block for Effect 3 that differs. */

const block =
  /^(?:With Effect 4:\n\n```ts\n([^]*?)^```\n\nWith Effect 3:\n\n)?```ts\n([^]*?)^```$/gm

const fenced = (code) => `\`\`\`ts\n${code.trimEnd()}\n\`\`\``

/**
 * A page with the generated code for Effect 4. A block that is the same for both majors stays alone.
 *
 * @param {string} text
 * @param {(code: string) => string} inEffect4
 */
export const pageOf = (text, inEffect4) =>
  text.replace(block, (_, _shown, own) => {
    const code = inEffect4(own)
    if (code === own) return fenced(own)
    return `With Effect 4:\n\n${fenced(code)}\n\nWith Effect 3:\n\n${fenced(own)}`
  })

/**
 * The TypeScript blocks of a page, with what it shows for Effect 4 if that differs.
 *
 * @param {string} text
 * @returns {Array<{ effect3: string, effect4: string | undefined }>}
 */
export const pairsOf = (text) =>
  [...text.matchAll(block)].map(([, effect4, effect3]) => ({ effect3, effect4 }))

/**
 * A page without the code for Effect 4, and with the same lines.
 *
 * @param {string} text
 */
export const withoutEffect4 = (text) =>
  text.replace(/^With Effect 4:\n\n```ts\n[^]*?^```$/gm, (shown) => shown.replace(/./g, ""))
