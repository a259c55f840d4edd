import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { OpenIdModule } from '../openid/openid.module';
import { RateLimitsRepository } from '../rate-limits/rate-limits.repository';
import { RateLimitsService } from '../rate-limits/rate-limits.service';
import { WindowsSignInModule } from '../windows/windows-sign-in.module';
import { BearerFlow } from './flows/bearer.flow';
import { OpenIdFlow } from './flows/openid.flow';
import { PasswordFlow } from './flows/password.flow';
import { RefreshFlow } from './flows/refresh.flow';
import { TrustFlow } from './flows/trust.flow';
import { TrustSimpleFlow } from './flows/trust-simple.flow';
import { WindowsFlow } from './flows/windows.flow';
import { PurgeExpiredJob } from './purge-expired.job';
import { RefreshSessionsRepository } from './refresh-sessions.repository';
import { RefreshSessionsService } from './refresh-sessions.service';
import { TokenApplicationsService } from './token-applications.service';
import { TokenIssuer, TokenMetrics } from './token-issuer.service';
import { TokenSigner } from './token-signer.service';
import { TrustSignaturesRepository } from './trust-signatures.repository';

@Module({})
export class TokenModule {
  /** @param imports the modules that know identities and verify access tokens; both depend on configuration */
  static forRoot(...imports: DynamicModule[]): DynamicModule {
    return {
      module: TokenModule,
      imports: [...imports, OpenIdModule, WindowsSignInModule],
      controllers: [
        RefreshFlow,
        PasswordFlow,
        TrustFlow,
        TrustSimpleFlow,
        BearerFlow,
        OpenIdFlow,
        WindowsFlow,
      ],
      providers: [
        TokenIssuer,
        TokenMetrics,
        TokenSigner,
        RefreshSessionsRepository,
        RefreshSessionsService,
        TokenApplicationsService,
        TrustSignaturesRepository,
        RateLimitsRepository,
        RateLimitsService,
        PurgeExpiredJob,
      ],
      exports: [TokenMetrics],
    };
  }
}
