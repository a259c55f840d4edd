import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { ApplicationsModule } from '../../applications/applications.module';
import { OpenIdModule } from '../../openid/openid.module';
import { RateLimitsModule } from '../../rate-limits/rate-limits.module';
import { WindowsModule } from '../../windows/windows.module';
import { BearerFlow } from './bearer.flow';
import { CodeFlow } from './code.flow';
import { OpenIdFlow } from './openid.flow';
import { PasswordFlow } from './password.flow';
import { RefreshFlow } from './refresh.flow';
import { TrustFlow } from './trust.flow';
import { TrustSimpleFlow } from './trust-simple.flow';
import { WindowsFlow } from './windows.flow';

/** The endpoints that issue tokens. */
@Module({})
export class TokenFlowsModule {
  /** @param imports the modules that depend on configuration: identities, passwords, tokens, verification */
  static forRoot(...imports: DynamicModule[]): DynamicModule {
    return {
      module: TokenFlowsModule,
      imports: [...imports, ApplicationsModule, OpenIdModule, RateLimitsModule, WindowsModule],
      controllers: [
        RefreshFlow,
        PasswordFlow,
        TrustFlow,
        TrustSimpleFlow,
        BearerFlow,
        OpenIdFlow,
        CodeFlow,
        WindowsFlow,
      ],
    };
  }
}
