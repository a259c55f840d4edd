/** Injection token of the `Clock`; the machine's clock unless a test overrides it. */
export const CLOCK = Symbol('Clock');
