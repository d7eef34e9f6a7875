/** The code for Effect 4 on pages, of which the generator is the author. */

/**
 * A page without the code for Effect 4, and with the same lines.
 *
 * @param {string} text
 */
export const withoutEffect4 = (text) =>
  text.replace(/^With Effect 4:\n\n```ts\n[^]*?^```$/gm, (block) => block.replace(/./g, ""))
