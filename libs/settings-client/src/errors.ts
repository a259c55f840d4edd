/** The parts of an RFC 9457 problem that the service sends. */
export interface ProblemDetails {
  readonly type?: string;
  readonly title?: string;
  readonly status?: number;
  readonly detail?: string;
  readonly instance?: string;
  readonly traceId?: string;
  readonly errors?: Readonly<Record<string, readonly string[]>>;
}

/**
 * Every failure that this library tells of, except a caller's own abort and a TypeError for an unusable
 * argument.
 */
export abstract class SettingsClientError extends Error {}

/** The service answered with an error that no retry changes. */
export class SettingsHttpError extends SettingsClientError {
  override readonly name: string = 'SettingsHttpError';

  /** @param problem what the service said about it; null when the response was no problem details */
  constructor(
    readonly status: number,
    readonly problem: ProblemDetails | null,
    message = `the settings service answered ${String(status)}${problem?.detail === undefined ? '' : `: ${problem.detail}`}`,
  ) {
    super(message);
  }
}

/**
 * The setting does not exist. A 404 from anything else, such as a wrong base URL, is a plain
 * SettingsHttpError.
 */
export class SettingNotFoundError extends SettingsHttpError {
  override readonly name = 'SettingNotFoundError';
}

/** 412: the setting is not, or no longer, in the state that `ifMatch` or `ifNoneMatch` asked for. */
export class SettingChangedError extends SettingsHttpError {
  override readonly name = 'SettingChangedError';
}

/**
 * No usable response: network errors, timeouts or a failing service until attempts or the retry budget ran
 * out; see `cause`.
 */
export class SettingsUnavailableError extends SettingsClientError {
  override readonly name = 'SettingsUnavailableError';

  /** How long the service asked to wait by Retry-After, in milliseconds; null when it did not. */
  readonly retryAfterMs: number | null;

  /** @param attempts how often it was tried, the first time included */
  constructor(
    readonly attempts: number,
    options: { cause: unknown; retryAfterMs?: number | null },
  ) {
    const { cause, retryAfterMs = null } = options;
    super(`the settings service could not be reached in ${String(attempts)} attempt(s)`, { cause });
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * The response is a success and yet not what the service sends, as from a proxy's page or another service.
 */
export class SettingsProtocolError extends SettingsClientError {
  override readonly name = 'SettingsProtocolError';
}

/** The problem type with which the service says that a setting does not exist. */
const SETTING_NOT_FOUND = 'urn:platform:problem:setting-not-found';

/** The error for a response with a status outside 2xx. */
export function httpError(status: number, body: string): SettingsHttpError {
  const problem = parseProblem(body);
  if (status === 404 && problem?.type === SETTING_NOT_FOUND) return new SettingNotFoundError(status, problem);
  if (status === 412) return new SettingChangedError(status, problem);
  return new SettingsHttpError(status, problem);
}

function parseProblem(body: string): ProblemDetails | null {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
