/** The outcome of a token request. Source: authentication spec, TokenRejectionReason. */
export enum TokenRejectionReason {
  Successful = 0,
  AuthenticationFailed = 1,
  AccessTokenIsNotValid = 2,
  RefreshThresholdExceeded = 3,
  RefreshTokenIsNotValid = 4,
  UnsupportedRefreshIdentity = 5,
  TokenRevoked = 6,
  InvalidRequest = 7,
  InvalidGrant = 8,
}

/** Every reason except Successful. */
export type Rejection = Exclude<TokenRejectionReason, TokenRejectionReason.Successful>;

export const REASONS = Object.values(TokenRejectionReason).filter((each) => typeof each === 'number');
export const REJECTIONS = REASONS.filter(
  (each): each is Rejection => each !== TokenRejectionReason.Successful,
);

/**
 * The stage at which a trust request failed: the application's proof, or the resolution of the user or
 * persona.
 */
export type RejectionStage = 'proof' | 'resolution';

type RejectionStatus = 400 | 401 | 422;
/** Null if the flow never rejects with the reason. */
type Cell = RejectionStatus | Record<RejectionStage, RejectionStatus> | null;

const trust = {
  [TokenRejectionReason.AuthenticationFailed]: { proof: 401, resolution: 422 },
  [TokenRejectionReason.AccessTokenIsNotValid]: null,
  [TokenRejectionReason.RefreshThresholdExceeded]: null,
  [TokenRejectionReason.RefreshTokenIsNotValid]: null,
  [TokenRejectionReason.UnsupportedRefreshIdentity]: null,
  [TokenRejectionReason.TokenRevoked]: null,
  [TokenRejectionReason.InvalidRequest]: 400,
  [TokenRejectionReason.InvalidGrant]: 422,
} as const satisfies Record<Rejection, Cell>;

const singleSignOn = {
  [TokenRejectionReason.AuthenticationFailed]: 401,
  [TokenRejectionReason.AccessTokenIsNotValid]: null,
  [TokenRejectionReason.RefreshThresholdExceeded]: null,
  [TokenRejectionReason.RefreshTokenIsNotValid]: null,
  [TokenRejectionReason.UnsupportedRefreshIdentity]: null,
  [TokenRejectionReason.TokenRevoked]: null,
  [TokenRejectionReason.InvalidRequest]: 400,
  [TokenRejectionReason.InvalidGrant]: 401,
} as const satisfies Record<Rejection, Cell>;

/**
 * The HTTP status of each rejection reason, by token flow. A new reason without statuses does not compile.
 */
export const REJECTION_STATUS = {
  refresh: {
    [TokenRejectionReason.AuthenticationFailed]: 401,
    [TokenRejectionReason.AccessTokenIsNotValid]: null,
    [TokenRejectionReason.RefreshThresholdExceeded]: 422,
    [TokenRejectionReason.RefreshTokenIsNotValid]: 401,
    [TokenRejectionReason.UnsupportedRefreshIdentity]: 422,
    [TokenRejectionReason.TokenRevoked]: 401,
    [TokenRejectionReason.InvalidRequest]: 400,
    [TokenRejectionReason.InvalidGrant]: 422,
  },
  password: {
    [TokenRejectionReason.AuthenticationFailed]: 401,
    [TokenRejectionReason.AccessTokenIsNotValid]: null,
    [TokenRejectionReason.RefreshThresholdExceeded]: null,
    [TokenRejectionReason.RefreshTokenIsNotValid]: null,
    [TokenRejectionReason.UnsupportedRefreshIdentity]: null,
    [TokenRejectionReason.TokenRevoked]: null,
    [TokenRejectionReason.InvalidRequest]: 400,
    [TokenRejectionReason.InvalidGrant]: 422,
  },
  trust,
  'trust-simple': trust,
  bearer: {
    [TokenRejectionReason.AuthenticationFailed]: 401,
    [TokenRejectionReason.AccessTokenIsNotValid]: 401,
    [TokenRejectionReason.RefreshThresholdExceeded]: null,
    [TokenRejectionReason.RefreshTokenIsNotValid]: null,
    [TokenRejectionReason.UnsupportedRefreshIdentity]: null,
    [TokenRejectionReason.TokenRevoked]: 401,
    [TokenRejectionReason.InvalidRequest]: 401,
    [TokenRejectionReason.InvalidGrant]: 401,
  },
  openid: singleSignOn,
  // The second half of a single sign-on, so the same statuses as openid.
  code: singleSignOn,
  // The same statuses as openid, its successor: the specification has 400 and 401 for OpenID Connect.
  windows: singleSignOn,
} as const satisfies Record<string, Record<Rejection, Cell>>;

/** A token flow. Each has one endpoint, and some an obsolete alias. */
export type TokenFlow = keyof typeof REJECTION_STATUS;
/** All token flows. An application may be permitted any of them. */
export const TOKEN_FLOWS = Object.keys(REJECTION_STATUS) as readonly TokenFlow[];

/**
 * Returns the HTTP status of a rejection. A null stage counts as `proof`.
 * @throws {RangeError} for a reason that the flow never uses, which is a programming error
 */
export function rejectionStatus(
  flow: TokenFlow,
  reason: Rejection,
  stage: RejectionStage | null,
): RejectionStatus {
  const cell: Cell = REJECTION_STATUS[flow][reason];
  if (cell === null)
    throw new RangeError(`the ${flow} flow never rejects with ${TokenRejectionReason[reason]}`);
  return typeof cell === 'number' ? cell : cell[stage ?? 'proof'];
}

/**
 * Thrown to reject a token request. `message` is public and the same for an unknown user, a locked account
 * and a wrong password, so that it does not help guessing. `privateDetail` is written to the log and the
 * audit row, and never sent to the caller.
 */
export class TokenRejected extends Error {
  override readonly name = 'TokenRejected';
  readonly stage: RejectionStage | null;
  readonly privateDetail: string | undefined;

  constructor(
    readonly reason: Rejection,
    publicDetail: string,
    options: { stage?: RejectionStage; privateDetail?: string; cause?: unknown } = {},
  ) {
    super(publicDetail, { cause: options.cause });
    this.stage = options.stage ?? null;
    this.privateDetail = options.privateDetail;
  }
}
