import { SettingsHttpError, SettingsProtocolError, SettingsUnavailableError } from './errors';

/** Returns true if the server sent a response, even an error response. */
export function isResponse(error: unknown): boolean {
  const cause = error instanceof SettingsUnavailableError ? error.cause : error;
  return cause instanceof SettingsHttpError || cause instanceof SettingsProtocolError;
}

/** Returns true for a response that will stay the same: the address, the token or an option is wrong. */
export function isPermanent(error: unknown): error is Error {
  return error instanceof SettingsHttpError || error instanceof SettingsProtocolError;
}

/** Returns true if access was refused. The reader must then not get the last known value either. */
export function isForbidden(error: unknown): boolean {
  return error instanceof SettingsHttpError && (error.status === 401 || error.status === 403);
}
