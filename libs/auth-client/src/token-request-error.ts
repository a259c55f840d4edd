/** Why no token came. */
export type TokenRequestFailure =
  /** The service refused: `status` and `rejectionReason` say how. Asking again with the same settings will not help. */
  | 'rejected'
  /** The service is out of reach, overloaded or answers nonsense; it will be asked again. */
  | 'unavailable'
  /** The caller's signal ended the wait. */
  | 'aborted';

/** No token could be had. Holds no secret, no code and no token. */
export class TokenRequestError extends Error {
  override readonly name = 'TokenRequestError';
  /** HTTP status, where the service answered. */
  readonly status: number | undefined;
  /** TokenRejectionReason, where the service gave one. Source: authentication spec, TokenRejectionReason. */
  readonly rejectionReason: number | undefined;

  constructor(
    readonly failure: TokenRequestFailure,
    message: string,
    details: { status?: number; rejectionReason?: number; cause?: unknown } = {},
  ) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined);
    this.status = details.status;
    this.rejectionReason = details.rejectionReason;
  }
}
