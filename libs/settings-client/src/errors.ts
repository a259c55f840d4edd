/** The members of an RFC 9457 problem that the service sends. */
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
 * Base class of this library's errors. A caller's own abort rejects with the signal's reason instead, and an
 * unusable argument with a TypeError.
 */
export abstract class SettingsClientError extends Error {}

/** The service responded with an error that a retry cannot change. */
export class SettingsHttpError extends SettingsClientError {
  override readonly name: string = 'SettingsHttpError';

  /** @param problem problem details of the response; null if it had none */
  constructor(
    readonly status: number,
    readonly problem: ProblemDetails | null,
    message = `the settings service responded with status ${String(status)}${problem?.detail === undefined ? '' : `: ${problem.detail}`}`,
  ) {
    super(message);
  }
}

/**
 * The setting does not exist. Any other 404, for example because of a wrong base URL, is a plain
 * SettingsHttpError.
 */
export class SettingNotFoundError extends SettingsHttpError {
  override readonly name = 'SettingNotFoundError';
}

/** 412: the setting does not satisfy `ifMatch` or `ifNoneMatch`. */
export class SettingChangedError extends SettingsHttpError {
  override readonly name = 'SettingChangedError';
}

/**
 * No usable response: network errors, timeouts or service errors until the attempts or the retry budget were
 * used up. `cause` holds the last failure.
 */
export class SettingsUnavailableError extends SettingsClientError {
  override readonly name = 'SettingsUnavailableError';

  /** Delay requested by Retry-After, in milliseconds; null if the response had none. */
  readonly retryAfterMs: number | null;

  /** @param attempts number of attempts, including the first one */
  constructor(
    readonly attempts: number,
    options: { cause: unknown; retryAfterMs?: number | null },
  ) {
    const { cause, retryAfterMs = null } = options;
    super(`the settings service could not be reached in ${String(attempts)} attempt(s)`, { cause });
    this.retryAfterMs = retryAfterMs;
  }
}

/** The response has a success status but was not sent by the settings service, for example a proxy's page. */
export class SettingsProtocolError extends SettingsClientError {
  override readonly name = 'SettingsProtocolError';
}

/** The problem type for a setting that does not exist. */
const SETTING_NOT_FOUND = 'urn:platform:problem:setting-not-found';

/** Returns the error for a response with a status outside 2xx. */
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
