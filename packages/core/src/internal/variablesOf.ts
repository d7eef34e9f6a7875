/**
 * The variables that credentials were read from, for error messages. Not a property, because credentials are equal when
 * their ids and secrets are.
 */
export const variablesOf = new WeakMap<object, { readonly clientId: string; readonly clientSecret: string }>()
