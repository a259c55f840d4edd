import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { RateLimitsModule } from '../rate-limits/rate-limits.module';
import { BoundSessionsJob } from './bound-sessions.job';
import { PresentedRefreshTokens } from './presented-refresh-tokens.service';
import { RecordSnapshotsJob } from './record-snapshots.job';
import { RefreshSessionsRepository } from './refresh-sessions.repository';
import { RefreshSessionsService } from './refresh-sessions.service';
import { SessionBoundsRepository } from './session-bounds.repository';
import { TokenIssuer } from './token-issuer.service';
import { TokenKeyring } from './token-keyring.service';
import { TrustedSignIn } from './trusted-sign-in.service';

/** Tokens and the sessions that they belong to. */
@Module({})
export class TokenModule {
  static forRoot(identity: DynamicModule): DynamicModule {
    return {
      module: TokenModule,
      imports: [identity, RateLimitsModule],
      providers: [
        TokenIssuer,
        TokenKeyring,
        RefreshSessionsRepository,
        RefreshSessionsService,
        PresentedRefreshTokens,
        TrustedSignIn,
        SessionBoundsRepository,
        BoundSessionsJob,
        RecordSnapshotsJob,
      ],
      exports: [TokenIssuer, RefreshSessionsService, PresentedRefreshTokens, TrustedSignIn],
    };
  }
}
