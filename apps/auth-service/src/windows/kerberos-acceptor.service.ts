import { createRequire } from 'node:module';
import { withTimeout } from '@platform/time';
import { currentNetwork } from '../audit/token-attempt';
import { BoundedWork } from '../bounded-work';

/** The part of the package `kerberos` that accepts tickets. */
interface KerberosPackage {
  initializeServer(service: string): Promise<KerberosServer>;
}

interface KerberosServer {
  step(ticket: string): Promise<unknown>;
  readonly username: string | null;
  readonly response: string | null;
  readonly contextComplete: boolean;
}

/**
 * Tickets cannot be verified at present: the keytab or the replay cache is unusable, the verification timed
 * out, or the replica's clock is wrong. Returned as a 503, never as a rejection.
 */
export class KerberosUnavailableError extends Error {
  override readonly name = 'KerberosUnavailableError';
}

/** The ticket is not valid. */
export class TicketRefusedError extends Error {
  override readonly name = 'TicketRefusedError';
}

export interface AcceptedTicket {
  /** `user@REALM`. */
  principal: string;
  /** The server's proof for the client, in base64. Null if the client requested none. */
  reply: string | null;
}

/**
 * Time limit for verifying a ticket. Verification is local and takes milliseconds, unless a name server
 * hangs.
 */
const TIME_LIMIT_MS = 5_000;
/**
 * Matches errors about a local file that cannot be read or written, e.g. the replay cache. Any other error is
 * the ticket's fault.
 */
const LOCAL_FAULT = /\(filename: /;

/** Accepts Kerberos tickets with the keytab in KRB5_KTNAME, through the native package `kerberos`. */
export class KerberosAcceptor {
  private readonly work: BoundedWork;

  private constructor(
    private readonly kerberos: KerberosPackage,
    private readonly service: string,
    concurrency: number,
  ) {
    // The native calls occupy threads that password hashing and file access need too.
    this.work = new BoundedWork(concurrency, concurrency * 25);
  }

  /**
   * Loads the package and tries the keytab, so that a replica that cannot accept any ticket fails at start.
   * @param service `HTTP@host`, the form of GSSAPI; not the `HTTP/host@REALM` of Kerberos
   */
  static async open(service: string, concurrency: number): Promise<KerberosAcceptor> {
    const acceptor = new KerberosAcceptor(loadPackage(), service, concurrency);
    await acceptor.openKeytab();
    return acceptor;
  }

  /**
   * Verifies a ticket.
   * @param ticket base64
   * @throws {TicketRefusedError} when the ticket is invalid
   * @throws {KerberosUnavailableError} when it cannot be verified
   * @throws {TooMuchWorkError} when the queue is full
   */
  accept(ticket: string): Promise<AcceptedTicket> {
    // The slot stays occupied until the native call ends, even after the caller's timeout.
    return withTimeout(
      this.work.run(currentNetwork(), () => this.judge(ticket)),
      TIME_LIMIT_MS,
      () => new KerberosUnavailableError(`no verdict on a ticket within ${TIME_LIMIT_MS} ms`),
    );
  }

  private async judge(ticket: string): Promise<AcceptedTicket> {
    const server = await this.openKeytab();
    try {
      await server.step(ticket);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (LOCAL_FAULT.test(reason)) throw new KerberosUnavailableError(reason, { cause: error });
      throw new TicketRefusedError(reason, { cause: error });
    }
    if (!server.contextComplete || server.username === null) throw new TicketRefusedError('incomplete');
    return { principal: server.username, reply: server.response };
  }

  /** Opens the keytab for each ticket, so that a replaced keytab takes effect at once. */
  private async openKeytab(): Promise<KerberosServer> {
    try {
      return await this.kerberos.initializeServer(this.service);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new KerberosUnavailableError(
        `the keytab in KRB5_KTNAME cannot be used for WINDOWS_SERVICE_PRINCIPAL ${this.service}: ${reason}`,
        { cause: error },
      );
    }
  }
}

/** Loads the package on demand: it is optional, and its native part is not built everywhere. */
function loadPackage(): KerberosPackage {
  try {
    return createRequire(__filename)('kerberos') as KerberosPackage;
  } catch (error) {
    throw new KerberosUnavailableError(
      'WINDOWS_AUTHENTICATION=negotiate needs the package `kerberos`, which is not installed or not built here. ' +
        'Install libkrb5-dev, python3, make and g++, then run `docker/install-kerberos`.',
      { cause: error },
    );
  }
}
