import type { IncomingHttpHeaders } from 'node:http';
import { isProven } from '../applications/application';
import type { AuthConfig } from '../config';
import { userNameKey } from '../identity/identity';
import { TokenRejected, TokenRejectionReason } from '../rejections/token-rejection';
import { KerberosAcceptor, TicketRefusedError } from './kerberos-acceptor.service';
import type { AcceptedTicket } from './kerberos-acceptor.service';
import { InvalidTicketError, authenticatorOf, negotiateTicket } from './kerberos-ticket';
import type { WindowsTicketsRepository } from './windows-tickets.repository';

/** A Windows account that has proved itself. */
export interface WindowsSignedIn {
  /** See `windowsAccountKey`. */
  accountKey: string;
  /**
   * The `WWW-Authenticate` header of the successful response, with which the client can verify the server.
   * Null: none.
   */
  confirmation: string | null;
}

/** One way to prove a Windows account, chosen by WINDOWS_AUTHENTICATION. */
export abstract class WindowsSignIn {
  /** `WWW-Authenticate` of a refusal. Null: the client cannot retry with credentials. */
  abstract readonly challenge: string | null;

  /**
   * Authenticates the account in the headers.
   * @throws {TokenRejected} AuthenticationFailed; InvalidGrant when Windows authentication is off
   */
  abstract authenticate(headers: IncomingHttpHeaders): Promise<WindowsSignedIn>;
}

/** Refuses every request: Windows authentication is off. */
class NoWindowsSignIn extends WindowsSignIn {
  readonly challenge = null;

  authenticate(): Promise<WindowsSignedIn> {
    return Promise.reject(
      new TokenRejected(TokenRejectionReason.InvalidGrant, 'Windows authentication is not offered here.'),
    );
  }
}

/** The headers in which the proxy passes the user name and its own secret. Header names are in lower case. */
interface TrustedProxy {
  userHeader: string;
  secretHeader: string;
  secret: string;
  realm: string;
}

/** Trusts a reverse proxy that has authenticated the user and sends its secret. */
class TrustedHeaderSignIn extends WindowsSignIn {
  readonly challenge = null;

  constructor(private readonly proxy: TrustedProxy) {
    super();
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- its refusals are rejected promises
  async authenticate(headers: IncomingHttpHeaders): Promise<WindowsSignedIn> {
    const { userHeader, secretHeader, secret, realm } = this.proxy;
    // Checks the secret first, so that a caller without it learns nothing about the user header.
    if (!isProven({ given: Buffer.from(textOf(headers[secretHeader])) }, [Buffer.from(secret)]))
      throw windowsSignInFailed('wrong proxy secret');
    const principal = utf8HeaderText(textOf(headers[userHeader]));
    const accountKey = principal === null ? null : windowsAccountKey(principal, realm);
    if (accountKey === null) throw windowsSignInFailed('no user of the realm in the header');
    return { accountKey, confirmation: null };
  }
}

/** The only refusal of an unproven account. The reason is for the log only. */
function windowsSignInFailed(privateDetail: string, cause?: unknown): TokenRejected {
  return new TokenRejected(TokenRejectionReason.AuthenticationFailed, 'Authentication failed.', {
    privateDetail,
    cause,
  });
}

/** A single-part user name. Hosts (`host/…`), administrators (`…/admin`) and escaped names are not people. */
const PRINCIPAL = /^([^@/\\\s\p{Cc}\p{Cs}]{1,256})@([^@]{1,255})$/u;

/**
 * Returns the key by which the internal store maps a Windows account to a user: `<folded user name>@<realm>`.
 * Names are folded, because tickets carry them as typed; realms are compared exactly.
 * @param principal `user@REALM`
 * @returns null for anything but a user of `realm`
 */
export function windowsAccountKey(principal: string, realm: string): string | null {
  const [, user, principalRealm] = PRINCIPAL.exec(principal) ?? [];
  if (user === undefined || principalRealm !== realm) return null;
  return `${userNameKey(user)}@${realm}`;
}

/**
 * Returns the header's text; empty if the header is absent. Node joins repeated headers of these names with a
 * comma, and the joined text matches neither a secret nor a user.
 */
function textOf(header: string | string[] | undefined): string {
  return typeof header === 'string' ? header : '';
}

/** Decodes UTF-8 in a header, which Node reads as Latin-1. Returns null if it is not UTF-8. */
export function utf8HeaderText(value: string): string | null {
  const bytes = Buffer.from(value, 'latin1');
  const text = bytes.toString('utf8');
  return Buffer.from(text, 'utf8').equals(bytes) ? text : null;
}

/** The client proves the account itself with a Kerberos ticket (SPNEGO, RFC 4559). */
class NegotiateSignIn extends WindowsSignIn {
  readonly challenge = 'Negotiate';

  constructor(
    private readonly acceptor: KerberosAcceptor,
    private readonly tickets: WindowsTicketsRepository,
    private readonly realm: string,
  ) {
    super();
  }

  async authenticate({ authorization }: IncomingHttpHeaders): Promise<WindowsSignedIn> {
    const { ticket, authenticator } = readTicket(authorization);
    const { principal, reply } = await this.accept(ticket);
    // Only accepted tickets are recorded. The ticket is recorded before any other check, so it is used up
    // even if a later check refuses the user.
    if (!(await this.tickets.record(authenticator))) throw windowsSignInFailed('ticket replayed');
    const accountKey = windowsAccountKey(principal, this.realm);
    if (accountKey === null) throw windowsSignInFailed('no user of the realm');
    return { accountKey, confirmation: reply === null ? null : `Negotiate ${reply}` };
  }

  private async accept(ticket: Buffer): Promise<AcceptedTicket> {
    try {
      return await this.acceptor.accept(ticket.toString('base64'));
    } catch (error) {
      if (error instanceof TicketRefusedError)
        throw windowsSignInFailed(`ticket refused: ${error.message}`, error);
      throw error;
    }
  }
}

function readTicket(authorization: string | undefined): { ticket: Buffer; authenticator: Buffer } {
  try {
    const ticket = negotiateTicket(authorization);
    if (ticket === null) throw new InvalidTicketError('no ticket');
    return { ticket, authenticator: authenticatorOf(ticket) };
  } catch (error) {
    if (error instanceof InvalidTicketError) throw windowsSignInFailed(error.message, error);
    throw error;
  }
}

/**
 * Creates the configured way to sign in. The configuration schema guarantees that its settings are complete.
 */
export async function chooseSignIn(
  config: AuthConfig,
  tickets: WindowsTicketsRepository,
): Promise<WindowsSignIn> {
  const realm = config.WINDOWS_REALM ?? '';
  switch (config.WINDOWS_AUTHENTICATION) {
    case 'off':
      return new NoWindowsSignIn();
    case 'negotiate': {
      const principal = config.WINDOWS_SERVICE_PRINCIPAL ?? '';
      const acceptor = await KerberosAcceptor.open(principal, config.WINDOWS_TICKET_CONCURRENCY);
      return new NegotiateSignIn(acceptor, tickets, realm);
    }
    case 'trusted-header':
      return new TrustedHeaderSignIn({
        userHeader: config.WINDOWS_PROXY_USER_HEADER,
        secretHeader: config.WINDOWS_PROXY_SECRET_HEADER,
        secret: config.WINDOWS_PROXY_SECRET ?? '',
        realm,
      });
  }
}
