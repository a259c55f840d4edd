import { SettingsHttpError, SettingsProtocolError, SettingsUnavailableError } from './errors';

/** The server responded, if only to refuse. */
export function isResponse(error: unknown): boolean {
  const cause = error instanceof SettingsUnavailableError ? error.cause : error;
  return cause instanceof SettingsHttpError || cause instanceof SettingsProtocolError;
}

/** A server that responds so will respond so again: the address, the token or an option is wrong. */
export function isNoReasonToWait(error: unknown): error is Error {
  return error instanceof SettingsHttpError || error instanceof SettingsProtocolError;
}

/** Access was refused, so that the last known value is not for this reader either. */
export function isForbidden(error: unknown): boolean {
  return error instanceof SettingsHttpError && (error.status === 401 || error.status === 403);
}
