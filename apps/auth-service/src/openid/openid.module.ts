import { Module } from '@nestjs/common';
import { CLOCK } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { IdentityProvider } from './identity-provider.client';
import { ProviderMetadata, openIdSettingsOf } from './provider-metadata.client';
import { SignInsRepository } from './sign-ins.repository';
import { SingleSignOn } from './single-sign-on.service';

@Module({
  providers: [
    SignInsRepository,
    SingleSignOn,
    {
      provide: IdentityProvider,
      inject: [AUTH_CONFIG, CLOCK],
      // Null where single sign-on is not configured.
      useFactory: (config: AuthConfig, clock: Clock): IdentityProvider | null => {
        const settings = openIdSettingsOf(config);
        return settings && new IdentityProvider(settings, new ProviderMetadata(settings, clock));
      },
    },
  ],
  exports: [SingleSignOn],
})
export class OpenIdModule {}
