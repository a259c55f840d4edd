import type { IncomingHttpHeaders } from 'node:http';
import { TokenRejected, TokenRejectionReason } from '../token-endpoints/rejection';

/** A Windows account that has proven itself. */
export interface WindowsSignedIn {
  /** See `windowsAccountKey`. */
  accountKey: string;
  /** What goes into `WWW-Authenticate` of the successful answer, so that the client can check the server in turn. */
  confirmation: string | null;
}

/** One way of proving a Windows account: WINDOWS_AUTHENTICATION chooses it. */
export abstract class WindowsSignIn {
  /** `WWW-Authenticate` of a refusal; null: the client cannot do anything about it. */
  abstract readonly challenge: string | null;

  /** @throws {TokenRejected} AuthenticationFailed; InvalidGrant when Windows authentication is switched off */
  abstract authenticate(headers: IncomingHttpHeaders): Promise<WindowsSignedIn>;
}

/** Windows authentication is not offered. */
export class NoWindowsSignIn extends WindowsSignIn {
  readonly challenge = null;

  authenticate(): Promise<WindowsSignedIn> {
    return Promise.reject(
      new TokenRejected(TokenRejectionReason.InvalidGrant, 'Windows authentication is not offered here.'),
    );
  }
}

/** The one refusal of an account that is not proven: what was wrong is for the log only. */
export function windowsSignInFailed(privateDetail: string, cause?: unknown): TokenRejected {
  return new TokenRejected(TokenRejectionReason.AuthenticationFailed, 'Authentication failed.', {
    privateDetail,
    cause,
  });
}
