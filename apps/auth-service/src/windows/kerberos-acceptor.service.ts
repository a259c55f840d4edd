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
 * Tickets cannot be judged at the moment: keytab, replay cache or time are missing. Answered as 503, never as
 * a rejection.
 */
export class KerberosUnavailableError extends Error {
  override readonly name = 'KerberosUnavailableError';
}

/** The ticket is not good. */
export class TicketRefusedError extends Error {
  override readonly name = 'TicketRefusedError';
}

export interface AcceptedTicket {
  /** `user@REALM`. */
  principal: string;
  /** The server's proof for the client, base64; null when the client asked for none. */
  reply: string | null;
}

/** A ticket is judged locally, in milliseconds; only a name server that hangs makes it long. */
const TIME_LIMIT_MS = 5_000;
/**
 * A local file that cannot be read or written, e.g. the replay cache. Everything else that fails is the
 * ticket's fault.
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
    // The native calls take threads that password hashes and files need too.
    this.work = new BoundedWork(concurrency, concurrency * 25);
  }

  /**
   * Loads the package and tries the keytab, so that a replica that could never accept a ticket does not
   * start.
   * @param service `HTTP@host`: the form of GSSAPI, not the `HTTP/host@REALM` of Kerberos
   */
  static async open(service: string, concurrency: number): Promise<KerberosAcceptor> {
    const acceptor = new KerberosAcceptor(loadPackage(), service, concurrency);
    await acceptor.openKeytab();
    return acceptor;
  }

  /** @param ticket base64
   *  @throws {TicketRefusedError} for a ticket that is not good
   *  @throws {KerberosUnavailableError} when it cannot be judged
   *  @throws {TooMuchWorkError} when too many are waiting already */
  accept(ticket: string): Promise<AcceptedTicket> {
    // The place is held until the native call is over, whether or not somebody still waits for it.
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

  /** Anew for each ticket: a keytab that was replaced counts at once. */
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

/** Loaded only when it is needed: it is optional and its native part is not built everywhere. */
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
