/**
 * Gives a class of errors the message that `describe` returns, and shows it wherever an error is printed. Effect's
 * loggers, `JSON.stringify` and, on Effect 4, `console.log` print what `toJSON` returns, which has no message in
 * `Schema.TaggedError`. The encoded form of the error stays the same. An error has only those fields that have a value,
 * because `console.log` would print `undefined` for the others.
 *
 * Takes a function, so that one `@__PURE__` lets a bundler drop the class with its schema if nothing uses it.
 */
export const withMessage = <C extends new(...args: never) => Error>(make: () => C): C => {
  // Its parameters do not matter here, because they are passed on. It gets `describe` from the class that extends it.
  const errorClass = make() as unknown as new(
    ...args: ReadonlyArray<unknown>
  ) => { readonly describe: () => string; readonly message: string }
  class WithMessage extends errorClass {
    constructor(...args: ReadonlyArray<unknown>) {
      super(...args)
      for (const [field, value] of Object.entries(this)) {
        if (value === undefined) Reflect.deleteProperty(this, field)
      }
      // Only a field is copied to another thread.
      Object.defineProperty(this, "message", { value: this.describe() })
    }
    toJSON() {
      return Object.assign({ message: this.message }, this)
    }
  }
  // It has the parameters, fields and static members of the class that it extends.
  return WithMessage as unknown as C
}
