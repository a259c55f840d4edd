import type { IncomingHttpHeaders } from 'node:http';
import { matchesAny } from '../applications/application';
import type { WindowsSignedIn } from './windows-sign-in';
import { WindowsSignIn, windowsSignInFailed } from './windows-sign-in';
import { utf8HeaderText, windowsAccountKey } from './windows-account';

/** Where the proxy writes what, and how it proves that it is the proxy. Header names are in lower case. */
export interface TrustedProxy {
  userHeader: string;
  secretHeader: string;
  secret: string;
  realm: string;
}

/** A reverse proxy has authenticated the user. Its word counts only together with its secret. */
export class TrustedHeaderSignIn extends WindowsSignIn {
  readonly challenge = null;

  constructor(private readonly proxy: TrustedProxy) {
    super();
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- a refusal is a rejected promise, as the contract says
  async authenticate(headers: IncomingHttpHeaders): Promise<WindowsSignedIn> {
    const { userHeader, secretHeader, secret, realm } = this.proxy;
    // The secret first: who does not know it learns nothing about the user header.
    if (!matchesAny(Buffer.from(textOf(headers[secretHeader])), [Buffer.from(secret)]))
      throw windowsSignInFailed('wrong proxy secret');
    const principal = utf8HeaderText(textOf(headers[userHeader]));
    const accountKey = principal === null ? null : windowsAccountKey(principal, realm);
    if (accountKey === null) throw windowsSignInFailed('no user of the realm in the header');
    return { accountKey, confirmation: null };
  }
}

/** Node joins repeated headers of these names with a comma, which then matches nothing. */
function textOf(header: string | string[] | undefined): string {
  return typeof header === 'string' ? header : '';
}
