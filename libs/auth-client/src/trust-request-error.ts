/** A field of a trust request that cannot be signed unambiguously. Names the field, never its value. */
export class TrustRequestError extends Error {
  override readonly name = 'TrustRequestError';

  constructor(
    readonly field: string,
    problem: string,
  ) {
    super(`${field} ${problem}`);
  }
}
