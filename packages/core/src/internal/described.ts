/**
 * Gives a class of errors the message that `describe` returns, and shows it wherever an error is printed. Effect's
 * loggers, `JSON.stringify` and, on Effect 4, `console.log` print what `toJSON` returns, which has no message in
 * `Schema.TaggedError`. The encoded form of the error stays the same.
 *
 * Takes a function, so that one `@__PURE__` lets a bundler drop the class with its schema if nothing uses it.
 */
export const described = <C extends new(...args: never) => Error>(make: () => C): C => {
  const errorClass = make()
  Object.defineProperties(errorClass.prototype, {
    message: {
      get(this: { readonly describe: () => string }) {
        return this.describe()
      }
    },
    toJSON: {
      value(this: Error) {
        return Object.assign({ message: this.message }, this)
      }
    }
  })
  return errorClass
}
