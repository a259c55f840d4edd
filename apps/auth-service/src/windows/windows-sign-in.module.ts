import { Module } from '@nestjs/common';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { KerberosAcceptor } from './kerberos-acceptor.service';
import { NegotiateSignIn, NoWindowsSignIn, TrustedHeaderSignIn, WindowsSignIn } from './windows-sign-in';
import { WindowsTicketsRepository } from './windows-tickets.repository';

/** Provides the way of signing in that the configuration chooses. Its settings are complete: the configuration saw to that. */
async function chooseSignIn(config: AuthConfig, tickets: WindowsTicketsRepository): Promise<WindowsSignIn> {
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

@Module({
  providers: [
    WindowsTicketsRepository,
    { provide: WindowsSignIn, inject: [AUTH_CONFIG, WindowsTicketsRepository], useFactory: chooseSignIn },
  ],
  exports: [WindowsSignIn],
})
export class WindowsSignInModule {}
