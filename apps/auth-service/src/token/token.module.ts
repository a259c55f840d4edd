import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { CLOCK } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { IntrospectionAudit } from '../introspection/introspection-audit.service';
import { IntrospectionController } from '../introspection/introspection.controller';
import { IdentityProvider } from '../openid/identity-provider.client';
import { ApplicationReturns } from '../openid/application-returns.service';
import { ProviderMetadata, openIdSettingsOf } from '../openid/provider-metadata.client';
import { SignInsRepository } from '../openid/sign-ins.repository';
import { SignOnCodesRepository } from '../openid/sign-on-codes.repository';
import { SingleSignOn } from '../openid/single-sign-on.service';
import { WaitingSignIns } from '../openid/waiting-sign-ins.service';
import { RateLimitsRepository } from '../rate-limits/rate-limits.repository';
import { RATE_LIMITS } from '../rate-limits/rate-limits.service';
import { TokenAllowances } from '../rate-limits/token-allowances.service';
import { WindowsSignIn, chooseSignIn } from '../windows/windows-sign-in';
import { WindowsTicketsRepository } from '../windows/windows-tickets.repository';
import { BoundSessionsJob } from './bound-sessions.job';
import { BearerFlow } from './flows/bearer.flow';
import { CodeFlow } from './flows/code.flow';
import { OpenIdFlow } from './flows/openid.flow';
import { PasswordFlow } from './flows/password.flow';
import { RefreshFlow } from './flows/refresh.flow';
import { TrustSimpleFlow } from './flows/trust-simple.flow';
import { TrustFlow } from './flows/trust.flow';
import { WindowsFlow } from './flows/windows.flow';
import { PresentedRefreshTokens } from './presented-refresh-tokens.service';
import { PurgeExpiredJob } from './purge-expired.job';
import { RecordSnapshotsJob } from './record-snapshots.job';
import { RefreshSessionsRepository } from './refresh-sessions.repository';
import { RefreshSessionsService } from './refresh-sessions.service';
import { SessionBoundsRepository } from './session-bounds.repository';
import { TokenApplicationsService } from './token-applications.service';
import { TokenIssuer } from './token-issuer.service';
import { TokenMetrics } from './token-metrics.service';
import { TokenSigner } from './token-signer.service';
import { TrustSignaturesRepository } from './trust-signatures.repository';
import { TrustedSignIn } from './trusted-sign-in.service';

const FLOWS = [
  RefreshFlow,
  PasswordFlow,
  TrustFlow,
  TrustSimpleFlow,
  BearerFlow,
  OpenIdFlow,
  CodeFlow,
  WindowsFlow,
];

@Module({})
export class TokenModule {
  /**
   * @param imports the modules for identities and for verifying access tokens, which depend on configuration
   */
  static forRoot(...imports: DynamicModule[]): DynamicModule {
    return {
      module: TokenModule,
      imports,
      controllers: [...FLOWS, IntrospectionController],
      providers: [
        TokenIssuer,
        TokenMetrics,
        TokenSigner,
        RefreshSessionsRepository,
        RefreshSessionsService,
        PresentedRefreshTokens,
        IntrospectionAudit,
        TokenApplicationsService,
        TrustSignaturesRepository,
        TrustedSignIn,
        RateLimitsRepository,
        RATE_LIMITS,
        TokenAllowances,
        PurgeExpiredJob,
        SessionBoundsRepository,
        BoundSessionsJob,
        RecordSnapshotsJob,
        SignInsRepository,
        WaitingSignIns,
        SingleSignOn,
        SignOnCodesRepository,
        ApplicationReturns,
        { provide: IdentityProvider, inject: [AUTH_CONFIG, CLOCK], useFactory: identityProvider },
        WindowsTicketsRepository,
        { provide: WindowsSignIn, inject: [AUTH_CONFIG, WindowsTicketsRepository], useFactory: chooseSignIn },
      ],
      exports: [TokenMetrics, IntrospectionAudit],
    };
  }
}

/** Creates the client of the identity provider; null if single sign-on is not configured. */
function identityProvider(config: AuthConfig, clock: Clock): IdentityProvider | null {
  const settings = openIdSettingsOf(config);
  return settings && new IdentityProvider(settings, new ProviderMetadata(settings, clock));
}
