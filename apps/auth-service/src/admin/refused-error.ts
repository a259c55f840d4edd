/** An administrator's command cannot be done, or not now; the message says why and what helps. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
}
