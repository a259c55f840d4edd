import { Module } from '@nestjs/common';
import { CLOCK } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { ApplicationsModule } from '../applications/applications.module';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { ApplicationReturns } from './application-returns.service';
import { IdentityProvider } from './identity-provider.client';
import { ProviderMetadata, openIdSettingsOf } from './provider-metadata.client';
import { SignInsRepository } from './sign-ins.repository';
import { SignOnCodesRepository } from './sign-on-codes.repository';
import { SingleSignOn } from './single-sign-on.service';
import { WaitingSignIns } from './waiting-sign-ins.service';

/** Single sign-on, and its return to applications. */
@Module({
  imports: [ApplicationsModule],
  providers: [
    SignInsRepository,
    WaitingSignIns,
    SingleSignOn,
    SignOnCodesRepository,
    ApplicationReturns,
    { provide: IdentityProvider, inject: [AUTH_CONFIG, CLOCK], useFactory: identityProvider },
  ],
  exports: [SingleSignOn, SignOnCodesRepository, ApplicationReturns],
})
export class OpenIdModule {}

/** Creates the client of the identity provider; null if single sign-on is not configured. */
function identityProvider(config: AuthConfig, clock: Clock): IdentityProvider | null {
  const settings = openIdSettingsOf(config);
  return settings && new IdentityProvider(settings, new ProviderMetadata(settings, clock));
}
