import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { AuditModule } from '../audit/audit.module';
import { BearerExchange } from './bearer-exchange.service';
import { ExternalIdentities } from '../openid/external-identities.service';
import { OpenIdModule } from '../openid/openid.module';
import { BearerFlow } from './flows/bearer.flow';
import { OpenIdFlow } from './flows/openid.flow';
import { PasswordFlow } from './flows/password.flow';
import { RefreshFlow } from './flows/refresh.flow';
import { WindowsFlow } from './flows/windows.flow';
import { SsoInitiateFlow } from './flows/sso-initiate.flow';
import { TrustSimpleFlow } from './flows/trust-simple.flow';
import { TrustFlow } from './flows/trust.flow';
import { RateLimitsModule } from '../rate-limits/rate-limits.module';
import { TrustedSubjects } from './trusted-subjects.service';
import { PurgeExpiredJob } from './purge-expired.job';
import { RefreshSessions } from './refresh-sessions.service';
import { SignInApplications } from './sign-in-applications.service';
import { TokenIssuer } from './token-issuer.service';
import { TokenMetrics } from './token-metrics.service';
import { TokenSigner } from './token-signer.service';
import { WindowsSignInModule } from '../windows/windows-sign-in.module';

@Module({})
export class TokenModule {
  /** @param imports the modules that know identities and verify access tokens; both depend on configuration */
  static forRoot(...imports: DynamicModule[]): DynamicModule {
    return {
      module: TokenModule,
      imports: [
        ...imports,
        AuditModule,
        OpenIdModule,
        RateLimitsModule,
        WindowsSignInModule,
      ],
      controllers: [
        RefreshFlow,
        PasswordFlow,
        TrustFlow,
        TrustSimpleFlow,
        BearerFlow,
        SsoInitiateFlow,
        OpenIdFlow,
        WindowsFlow,
      ],
      providers: [
        TokenIssuer,
        TokenMetrics,
        TokenSigner,
        RefreshSessions,
        BearerExchange,
        SignInApplications,
        TrustedSubjects,
        ExternalIdentities,
        PurgeExpiredJob,
      ],
      exports: [TokenMetrics],
    };
  }
}
