import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { ApplicationsModule } from '../applications/applications.module';
import { KeysModule } from '../keys/keys.module';
import { BearerExchange } from './bearer-exchange.service';
import { BearerFlow } from './flows/bearer.flow';
import { PasswordFlow } from './flows/password.flow';
import { RefreshFlow } from './flows/refresh.flow';
import { WindowsFlow } from './flows/windows.flow';
import { TrustSimpleFlow } from './flows/trust-simple.flow';
import { TrustFlow } from './flows/trust.flow';
import { TrustedSubjects } from './flows/trusted-subjects.service';
import { PurgeExpiredJob } from './purge-expired.job';
import { RefreshSessions } from './refresh-sessions.service';
import { SignInApplications } from './sign-in-applications.service';
import { TokenIssuer } from './token-issuer.service';
import { TokenMetrics } from './token-metrics.service';
import { TokenSigner } from './token-signer.service';
import { WindowsSignInModule } from './windows/windows-sign-in.module';

@Module({})
export class TokenModule {
  /** @param imports the modules that know identities and verify access tokens; both depend on configuration */
  static forRoot(...imports: DynamicModule[]): DynamicModule {
    return {
      module: TokenModule,
      imports: [...imports, ApplicationsModule, KeysModule, WindowsSignInModule],
      controllers: [RefreshFlow, PasswordFlow, TrustFlow, TrustSimpleFlow, BearerFlow, WindowsFlow],
      providers: [
        TokenIssuer,
        TokenMetrics,
        TokenSigner,
        RefreshSessions,
        BearerExchange,
        SignInApplications,
        TrustedSubjects,
        PurgeExpiredJob,
      ],
      exports: [TokenMetrics],
    };
  }
}
