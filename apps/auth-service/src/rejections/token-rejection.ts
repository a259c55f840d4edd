/** Why a token endpoint responds as it does. Source: authentication spec, TokenRejectionReason. */
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

/** Every reason but Successful. */
export type Rejection = Exclude<TokenRejectionReason, TokenRejectionReason.Successful>;

export const REASONS = Object.values(TokenRejectionReason).filter((each) => typeof each === 'number');
export const REJECTIONS = REASONS.filter(
  (each): each is Rejection => each !== TokenRejectionReason.Successful,
);

/**
 * Where in a trust request authentication failed: at the proof of the application, or at finding the user.
 */
export type RejectionStage = 'proof' | 'resolution';

type RejectionStatus = 400 | 401 | 422;
/** `null`: this flow never rejects for this reason. */
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
 * THE reason → status table, a column for each token flow. A new reason without its statuses does not
 * compile.
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
  // The second half of a single sign-on.
  code: singleSignOn,
  // As the flow that replaces it: the specification names 400 and 401 for OpenID Connect.
  windows: singleSignOn,
} as const satisfies Record<string, Record<Rejection, Cell>>;

/** The token flows. Each has one endpoint, and perhaps an obsolete second name of it. */
export type TokenFlow = keyof typeof REJECTION_STATUS;
/** All of them; an application may be permitted any. */
export const TOKEN_FLOWS = Object.keys(REJECTION_STATUS) as readonly TokenFlow[];

/** The HTTP status of a rejection. Without a stage it counts as one of the proof.
 *  @throws {RangeError} for a reason that the flow never gives: a programming error, not a response. */
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

/** A token request that gets a rejection. `message` is public and does not help guessing: an unknown user, a
 *  locked account and a wrong password have the same one. `privateDetail` goes to the log and the audit row,
 *  never to the caller. */
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
