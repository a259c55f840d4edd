/** Program files whose statements need not run with the rights of a service in integration tests, and why. */
export const excusedStatements: readonly { readonly file: string; readonly because: string }[] = [];
