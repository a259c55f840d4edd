import type { IncomingHttpHeaders } from 'node:http';
import type { AcceptedTicket, KerberosAcceptor } from './kerberos-acceptor.service';
import { TicketRefusedError } from './kerberos-acceptor.service';
import { InvalidTicketError, authenticatorOf, negotiateTicket } from './kerberos-ticket';
import type { WindowsSignedIn } from './windows-sign-in';
import { WindowsSignIn, windowsAccountKey, windowsSignInFailed } from './windows-sign-in';
import type { WindowsTicketsRepository } from './windows-tickets.repository';

/** The client proves the account itself, by a Kerberos ticket (SPNEGO, RFC 4559). */
export class NegotiateSignIn extends WindowsSignIn {
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
    // Only an accepted ticket takes a row, and before anything else is decided: it is used up either way.
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
